"""What a file holds or a command prints becomes a token, and is made anew in time."""

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.stack.authority import token
from proxy.access.commands import OUTPUT_BYTES, run_command
from proxy.access.files import read_file
from proxy.access.tokens import LONGEST_PAUSE, Tokens, bearer
from proxy.errors import SecretError
from proxy.settings import Token
from proxy.simulation.virtual_time import run as under_virtual_time

NOW = 1_800_000_000.0


def test_the_expiry_is_the_jwt_s_own_when_a_file_holds_one() -> None:
    made = bearer(token({"exp": NOW + 60}).encode() + b"\n", NOW)
    assert (made.expires, made.due) == (NOW + 60, NOW + 40)


def test_the_expiry_is_the_issuer_s_when_the_answer_is_json() -> None:
    made = bearer(json.dumps({"access_token": "opaque", "expires_in": 30, "token_type": "Bearer"}).encode(), NOW)
    assert (made.text, made.expires) == ("opaque", NOW + 30)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "holds no token"),
        (b"two words", "holds no token"),
        (b"a.b.c\x01", "holds no token"),
        (b'{"access_token": 5, "expires_in": 3}', "holds no token"),
        (b"opaque", "without expiry"),
        (token({"sub": "me"}).encode(), "without expiry"),
        (token({"exp": "soon"}).encode(), "without expiry"),
        (b'{"access_token": "opaque"}', "without expiry"),
    ],
)
def test_the_token_is_refused_in_words_that_quote_nothing_when_it_can_not_be_used(data: bytes, words: str) -> None:
    with pytest.raises(SecretError, match=words) as refused:
        bearer(data, NOW)
    assert "opaque" not in str(refused.value)


@given(data=st.binary(max_size=60) | st.text(alphabet="{}[]:\"'.e0-", max_size=30).map(str.encode))
def test_any_bytes_are_a_token_or_refused_when_they_are_read_as_one(data: bytes) -> None:
    try:
        made = bearer(data, NOW)
    except SecretError:
        return
    assert made.text.isascii()
    assert made.text not in repr(made)


class Issuer:
    """A command of which the test says what it prints and when it fails."""

    def __init__(self) -> None:
        self.runs: list[float] = []
        self.life = 90.0
        self.fails = False

    async def run(self, _command: Sequence[str], _seconds: float) -> bytes:
        self.runs.append(now())
        if self.fails:
            raise SecretError("command 'issue' fails with exit code 3")
        return token({"exp": NOW + now() + self.life}).encode()


def now() -> float:
    return asyncio.get_running_loop().time()


def issued_by(issuer: Issuer) -> Tokens:
    return Tokens(Token(command=("issue",)), read=read_file, run=issuer.run, wall=lambda: NOW + now())


def test_the_command_is_run_again_when_two_thirds_of_the_life_are_over() -> None:
    async def a_day() -> list[float]:
        issuer = Issuer()
        tokens = issued_by(issuer)
        start = now()
        for _ in range(200):
            await tokens.renew()
            assert not tokens.is_over
            await asyncio.sleep(1)
        return [round(at - start) for at in issuer.runs]

    assert under_virtual_time(a_day()) == [0, 60, 120, 180]


def test_the_last_token_stays_and_the_pauses_grow_to_their_bound_when_the_command_fails() -> None:
    async def failing() -> None:
        issuer = Issuer()
        tokens = issued_by(issuer)
        await tokens.renew()
        issuer.fails = True
        first = tokens.current
        await asyncio.sleep(61)
        while not tokens.is_over:
            with pytest.raises(SecretError, match="exit code 3"):
                await tokens.renew()
            assert tokens.current is first
            await asyncio.sleep(0.1)
        await asyncio.sleep(200)
        for _ in range(1000):
            with pytest.raises(SecretError):
                await tokens.renew()
            await asyncio.sleep(0.1)
        pauses = [later - earlier for earlier, later in zip(issuer.runs[1:], issuer.runs[2:], strict=False)]
        assert pauses[0] < 1
        assert max(pauses[-3:]) == pytest.approx(LONGEST_PAUSE, abs=0.2)
        issuer.fails = False
        await asyncio.sleep(LONGEST_PAUSE)
        await tokens.renew()
        assert not tokens.is_over

    under_virtual_time(failing())


async def test_the_output_is_returned_when_the_command_succeeds() -> None:
    assert await run_command(["printf", "%s", "a b"], 5) == b"a b"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo hidden; echo hidden >&2; exit 3", "fails with exit code 3"),
        ("sleep 60 & sleep 60", r"did not end within 0\.2 s"),
        (f"head -c {OUTPUT_BYTES + 1} /dev/zero", "prints more than"),
    ],
)
async def test_the_command_is_ended_and_not_quoted_when_it_fails(script: str, words: str, tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(SecretError, match=words) as failed:
        await run_command(["sh", "-c", script], 0.2 if "sleep" in script else 20)
    assert "hidden" not in str(failed.value)
    assert time.monotonic() - started < 30


async def test_the_program_is_named_when_it_is_missing() -> None:
    with pytest.raises(SecretError, match="'/no/such/program' can't be run: No such file"):
        await run_command(["/no/such/program", "--secret", "hidden"], 1)
