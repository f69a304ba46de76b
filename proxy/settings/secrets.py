"""What proves who we are: a secret text, or where it is found; a token, or what makes one. Read anew as they change."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, GetCoreSchemaHandler, SecretStr, field_serializer, model_validator
from pydantic_core import CoreSchema, core_schema

from proxy.settings.parts import FilePath, Part, Seconds, Text

MASK = "**********"
_BEARER = re.compile(r"[A-Za-z0-9._~+/-]{16,1024}=*")
BEARER_FORM = "16 to 1024 of A-Z a-z 0-9 . _ ~ + / -, like the answer of `openssl rand -hex 32`"


def fits_bearer(text: str) -> bool:
    """Return whether a text can stand in a header as a token (RFC 6750, 2.1), and can't be found by trying."""
    return _BEARER.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Secret:
    """A password: the text itself, or the file that holds it. Exactly one of them is given."""

    text: SecretStr | None = None
    file: str | None = None

    @classmethod
    def of(cls, value: object) -> Self:
        """Return the secret that a settings file describes: a text, or `{file: PATH}`. Raises `ValueError`."""
        match value:
            case cls():
                return value
            case SecretStr():
                return cls(value)
            case str():
                return cls(SecretStr(value))
            case {"file": str() as file, **others} if file and "\x00" not in file and not others:
                return cls(file=file)
        raise ValueError("is null" if value is None else "is no secret")

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Be taken from the file as `of` does, and shown without the text."""
        shown = core_schema.plain_serializer_function_ser_schema(cls._shown)
        return core_schema.no_info_plain_validator_function(cls.of, serialization=shown)

    def _shown(self) -> object:
        return MASK if self.file is None else {"file": self.file}


class Token(Part):
    """Where a token comes from, a JWT or an OAuth2 answer with `access_token` and `expires_in`: a file or a command."""

    file: FilePath | None = None
    """Read again when it changes; relative to the settings file."""
    command: Annotated[tuple[Text, ...], Field(min_length=1, max_length=64)] | None = None
    """Program and arguments, without a shell; what it prints is the token. It is run again before the token expires."""
    timeout: Annotated[Seconds, Field(ge=0.1, le=60)] = 10.0
    """The command is ended after this. Larger: bears a slow issuer; smaller: its failure is said sooner."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.file is None) == (self.command is None):
            raise ValueError("give exactly one of file, command")
        return self

    @field_serializer("command")
    def _program_alone(self, command: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if command is None else (command[0], *(MASK for _ in command[1:]))
