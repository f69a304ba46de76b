"""What somebody asks of the group over HTTP: from JSON to an intervention, and why not. Pure."""

import json
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from proxy.config.items import listing, printable, quoted
from proxy.config.words import nearest
from proxy.errors import SettingsError
from proxy.model import Mode
from proxy.operations.answers import ASKED
from proxy.operations.intervention import LONGEST_MS, MOST_CHARACTERS, Intervention
from proxy.operations.scope import checked
from proxy.settings import Settings
from proxy.settings.parts import Seconds

_SHORTEST_MS = 1_000
_DURATION: TypeAdapter[float] = TypeAdapter(Seconds)
_SCOPE = "say which event types are meant, by type or class: a name, or a list of names"


class RequestError(Exception):
    """Nothing was changed, unless the words say otherwise; `status` is HTTP's."""

    def __init__(self, status: int, words: str) -> None:
        """Take words of somebody else's as well: what can't be printed is escaped."""
        super().__init__(printable(words))
        self.status = status


def requested(body: bytes, settings: Settings, proof: str, now_ms: int) -> Intervention:
    """Return what is asked. `proof` is what is known of who asks. Raises `RequestError`.

    A `run` without an end gets the latest there is: whoever pins it ends it with what it takes back.
    """
    fields = _fields(body)
    allowed = list(ASKED["properties"])
    for name in fields:
        if name not in allowed:
            raise _bad(f"{quoted(name)} means nothing{nearest(name, allowed)} allowed: {listing(allowed)}")
    mode, modes = _text(fields, "mode"), list(Mode)
    if mode is None:
        raise _bad(f"say what is to become of the events, by mode: {listing(modes)}")
    if mode not in modes:
        raise _bad(f"mode {quoted(mode)} does not exist{nearest(mode, modes)} allowed: {listing(modes)}")
    try:
        needed = "say which routes are meant, by route" if mode == Mode.POLICY else _SCOPE
        own = [_names(fields, name) for name in ("type", "class", "route")]
        types, classes, routes = checked(settings, own[0], own[1], needed, own[2])
        until_ms = _until_ms(fields, Mode(mode), now_ms)
        by, why = author(proof, _text(fields, "who")), _text(fields, "why")
        rate = _rate(fields)
        return Intervention(
            secrets.token_hex(6),
            Mode(mode),
            types,
            classes,
            by,
            why,
            now_ms,
            until_ms,
            rate=rate,
            routes=routes,
            policy=_text(fields, "policy"),
        )
    except (SettingsError, ValueError) as error:
        raise _bad("; ".join(str(error).splitlines())) from error


def author(proof: str, said: str | None) -> str:
    """Return whose act it is: what is proved, then what is only said."""
    return proof if said is None else f"{proof}: {said}"


def words(name: str, value: object) -> str | None:
    """Return a text that somebody gave; None if they gave none. Raises `RequestError`."""
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value.strip()) <= MOST_CHARACTERS // 2:
        raise _bad(f"{name} must be a text of 1 to {MOST_CHARACTERS // 2} characters")
    return value


def _fields(body: bytes) -> Mapping[str, Any]:
    try:
        fields = json.loads(body, parse_constant=_no_number, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise _bad("the question is no JSON") from error
    if not isinstance(fields, dict):
        raise _bad("the question is no JSON object")
    return fields


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return them as an object; of two with one name one would be passed over. Raises `RequestError`."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise _bad(f"{quoted(name)} is there twice")
        fields[name] = value
    return fields


def _no_number(constant: str) -> None:
    raise ValueError(constant)


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    return words(name, fields.get(name))


def _names(fields: Mapping[str, Any], name: str) -> list[str]:
    given = fields.get(name, [])
    names = given if isinstance(given, list) else [given]
    if not all(isinstance(one, str) for one in names):
        raise _bad(f"{name} must be a name, or a list of names")
    return names


def _rate(fields: Mapping[str, Any]) -> float | None:
    rate = fields.get("rate")
    if rate is not None and (not isinstance(rate, int | float) or isinstance(rate, bool)):
        raise _bad("rate must be a number of events a second")
    return rate


def _until_ms(fields: Mapping[str, Any], mode: Mode, now_ms: int) -> int:
    given, until = fields.get("for"), _text(fields, "until")
    if given is not None and until is not None:
        raise _bad("say when it ends by for or by until, not by both")
    if given is None and until is None:
        if mode is Mode.RUN:
            return now_ms + LONGEST_MS
        raise _bad("say when it ends: for, like 10m or 2h, or until, a time; at most 7 days from now")
    until_ms = _time(until) if until is not None else now_ms + _duration(given)
    if not _SHORTEST_MS <= until_ms - now_ms <= LONGEST_MS:
        raise _bad("it must end 1 second to 7 days from now")
    return until_ms


def _duration(given: object) -> int:
    try:
        return round(_DURATION.validate_python(given) * 1000)
    except (ValidationError, OverflowError, ValueError) as error:
        raise _bad("for is no duration from 1s to 7d, like 30s, 10m or 2h") from error


def _time(given: str) -> int:
    try:
        until = datetime.fromisoformat(given)
        if until.tzinfo is None:
            raise ValueError("without a zone")
        return int(until.timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise _bad("until is no time with its zone, like 2026-11-23T20:58:12Z") from error


def _bad(why: str) -> RequestError:
    return RequestError(400, why)
