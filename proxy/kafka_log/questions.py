"""Questions that are asked again and again, each time with the same words, and mostly with the same answer.

About 1,000 partitions it takes the library some milliseconds to write one and as long to read what comes, every second,
however little happens. Here a question is written once, and an answer that is byte for byte the one that was kept is
not read again.
"""

from io import BytesIO
from typing import Any

from aiokafka.protocol.api import Request, RequestStruct


class Came:
    """What was answered to a `Question`."""

    def __init__(self, form: "_Form", body: bytes) -> None:
        self._form = form
        self._body = body
        self.response: Any = None
        """The library's; None if it is the same as the one that was kept last."""
        self.value: Any = None
        """What was kept with that one."""
        self.throttle_time_ms = form.throttle_time_ms
        if body == form.body:
            self.value = form.value
        else:
            self.response = form.struct.RESPONSE_TYPE.decode(body)
            self.throttle_time_ms = getattr(self.response, "throttle_time_ms", 0)

    def keep(self, value: Any = None) -> None:
        """Keep it, with what was made of it: whoever asks calls this once it has taken effect, never before."""
        self._form.body, self._form.value = self._body, value
        self._form.throttle_time_ms = self.throttle_time_ms


class Question:
    """A request that `Network.send` and `ask_any` take; its answer is a `Came`."""

    def __init__(self, request: Request[Any]) -> None:
        self._request = request
        self._forms: dict[tuple[int, int] | None, _Form] = {}
        """By the oldest and the newest version that a node knows."""

    @property
    def name(self) -> str:
        """Of the request, as the library has it."""
        return type(self._request).__name__

    def prepare(self, versions: dict[int, tuple[int, int]]) -> Any:
        """Return it in the newest version that a node and the library know, as the library's requests do."""
        known = versions.get(self._request.API_KEY)
        form = self._forms.get(known)
        if form is None:
            form = self._forms[known] = _Form(self._request.prepare(versions))
        return form


class _Form:
    """A question in one version, and the answer that was kept. Stands in for the library's `RequestStruct`."""

    def __init__(self, struct: RequestStruct) -> None:
        self.struct = struct
        self.build_request_header = struct.build_request_header
        self.parse_response_header = struct.parse_response_header
        self.body: bytes | None = None
        self.value: Any = None
        self.throttle_time_ms = 0
        self._written: bytes = struct.encode()

    @property
    def RESPONSE_TYPE(self) -> "_Form":  # noqa: N802  # as the library has it
        """Return who reads the answer."""
        return self

    def encode(self) -> bytes:
        """Return it on the wire."""
        return self._written

    def decode(self, stream: BytesIO) -> Came:
        """Return the answer, of which the library has read the header."""
        return Came(self, stream.read())
