"""Tokens and certificates at the admin address, over real connections."""

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import Metric
from pydantic import SecretStr
from structlog.testing import capture_logs

from load.stack.authority import Authority
from proxy.access import Access, admin_access
from proxy.event_loop import PreciseLoop
from proxy.operations.admin import Admin
from proxy.operations.doors import Refusal
from proxy.operations.visitors import VISITORS
from proxy.settings import AdminSettings, AdminTls, Secret

TOKEN, OTHER = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with certificates: server, server2, client of one authority, stranger of another."""
    folder = tmp_path_factory.mktemp("issued")
    for name in ("server", "server2", "client"):
        Authority(folder).issue(name, folder / name)
    Authority(folder / "foreign").issue("stranger", folder / "stranger")
    return folder


def nothing() -> Iterable[Metric]:
    return []


@asynccontextmanager
async def serving(settings: AdminSettings, access: Access | None = None) -> AsyncIterator[Admin]:
    """Run it, as if 127.0.0.1 was an address that strangers reach."""
    made = Admin(settings, status=lambda: {"ready": True}, families=nothing, access=access)
    running = asyncio.create_task(made.run())
    try:
        async with asyncio.timeout(5):
            while made.port is None:  # noqa: ASYNC110 -- seen by looking
                await asyncio.sleep(0.001)
        yield made
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def with_token(token: Secret) -> AdminSettings:
    return AdminSettings(listen="127.0.0.1:0", token=token)


def with_tls(folder: Path, name: str = "server", *, clients: bool = True) -> AdminSettings:
    ca = str(folder / "ca.pem") if clients else None
    tls = AdminTls(
        certificate_file=str(folder / f"{name}.pem"), key_file=str(folder / f"{name}.key"), client_ca_file=ca
    )
    return AdminSettings(listen="127.0.0.1:0", tls=tls)


def client_context(folder: Path, name: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if name is not None:
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


async def asked(made: Admin, path: str, context: ssl.SSLContext | None = None, **headers: str) -> tuple[int, Any]:
    scheme = "http" if context is None else "https"
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"{scheme}://127.0.0.1:{made.port}{path}", headers=headers, ssl=context or True) as answer,
    ):
        return answer.status, await (answer.text() if path == "/metrics" else answer.json())


def refused(made: Admin, why: Refusal) -> float:
    counts = {one.labels["why"]: one.value for family in made.doors.families() for one in family.samples}
    return float(counts[why.value])


async def counted(made: Admin, why: Refusal, times: int) -> None:
    async with asyncio.timeout(5):
        while refused(made, why) < times:  # noqa: ASYNC110 -- seen by looking
            await asyncio.sleep(0.001)


async def test_probes_answer_and_all_else_is_refused_with_the_remedy_when_no_token_is_borne() -> None:
    async with serving(with_token(Secret(SecretStr(TOKEN)))) as made:
        for path in ("/health", "/ready"):
            assert (await asked(made, path))[0] == 200
        for path in ("/scaling", "/state", "/openapi.json", "/nowhere"):
            status, told = await asked(made, path)
            assert status == 401
            assert "Authorization: Bearer TOKEN" in told["error"]
        assert (await asked(made, "/metrics"))[0] == 401
        status, told = await asked(made, "/state", Authorization=f"Bearer {OTHER}")
        assert (status, told["error"].partition(";")[0]) == (401, "the token is wrong")
        assert (await asked(made, "/state", Authorization=f"Bearer {TOKEN}")) == (200, {})
        assert (refused(made, Refusal.NO_PROOF), refused(made, Refusal.WRONG_TOKEN)) == (5, 1)


async def test_the_token_is_another_when_its_file_has_changed_and_stays_when_it_can_not_be_used(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    settings = with_token(Secret(file=str(file)))
    access = admin_access(settings)

    async def status(made: Admin, token: str) -> int:
        return (await asked(made, "/state", Authorization=f"Bearer {token}"))[0]

    async with serving(settings, access) as made:
        assert (await status(made, TOKEN), await status(made, OTHER)) == (200, 401)
        file.write_text(OTHER)
        access.look()
        assert (await status(made, TOKEN), await status(made, OTHER)) == (401, 200)
        file.write_text("short")
        with capture_logs() as said:
            access.look()
        assert (await status(made, OTHER), said[0]["event"], said[0]["what"]) == (200, "secret_unusable", "token")
        assert OTHER not in str(said)
        assert "short" not in said[0]["why"].replace(str(file), "")


def test_a_client_certificate_lets_in_and_a_wrong_one_does_not_on_every_loop(issued: Path) -> None:
    async def story() -> None:
        settings = with_tls(issued)
        async with serving(settings) as made:
            for _ in range(3):
                assert (await asked(made, "/state", client_context(issued, "client"))) == (200, {})
            bare = client_context(issued, None)
            assert (await asked(made, "/health", bare))[0] == 200
            assert (await asked(made, "/metrics", bare))[0] == 401
            with pytest.raises(aiohttp.ClientError):
                await asked(made, "/health", client_context(issued, "stranger"))
            await counted(made, Refusal.WRONG_CERTIFICATE, 1)
            with pytest.raises(aiohttp.ClientError):
                await asked(made, "/health")  # without TLS
            await counted(made, Refusal.WRONG_CERTIFICATE, 2)
            assert (await asked(made, "/state", client_context(issued, "client")))[0] == 200

    on_every_loop(story)


def test_new_connections_see_the_new_certificate_when_the_files_have_changed(issued: Path, tmp_path: Path) -> None:
    async def story() -> None:
        for end in ("pem", "key"):
            shutil.copy(issued / f"server.{end}", tmp_path / f"server.{end}")
        settings = with_tls(tmp_path, clients=False)
        access = admin_access(settings)

        async def shown(made: Admin) -> str:
            _, writer = await asyncio.open_connection("127.0.0.1", made.port, ssl=client_context(issued, None))
            certificate = writer.get_extra_info("peercert")
            writer.close()
            return str(dict(one[0] for one in certificate["subject"])["commonName"])

        async with serving(settings, access) as made:
            assert await shown(made) == "server"
            shutil.copy(issued / "server2.pem", tmp_path / "server.pem")
            access.look()  # half of it: the key is still the old one
            assert await shown(made) == "server"
            shutil.copy(issued / "server2.key", tmp_path / "server.key")
            access.look()
            assert await shown(made) == "server2"

    on_every_loop(story)


def test_a_probe_gets_in_when_every_place_is_taken_by_those_who_never_begin_tls(issued: Path) -> None:
    async def story() -> None:
        async with serving(with_tls(issued, clients=False)) as made:
            idle = [await asyncio.open_connection("127.0.0.1", made.port) for _ in range(2 * VISITORS)]
            try:
                async with asyncio.timeout(5):
                    assert (await asked(made, "/health", client_context(issued, None)))[0] == 200
            finally:
                for _, writer in idle:
                    writer.close()

    on_every_loop(story)


@pytest.mark.parametrize("header", [{"X-Long": "a" * 20_000}, {f"X-{number}": "a" * 1_000 for number in range(200)}])
async def test_it_is_refused_when_the_headers_of_a_question_are_too_long_or_too_many(header: dict[str, str]) -> None:
    async with serving(AdminSettings(listen="127.0.0.1:0")) as made, aiohttp.ClientSession() as client:
        with suppress(aiohttp.ClientError):
            async with client.get(f"http://127.0.0.1:{made.port}/health", headers=header) as answer:
                assert answer.status == 400
        assert (await asked(made, "/health"))[0] == 200


def on_every_loop(story: Callable[[], Awaitable[None]]) -> None:
    """Live through it on asyncio's loop, and on the one that ships."""

    async def live() -> None:
        await story()

    for factory in (asyncio.SelectorEventLoop, PreciseLoop):
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(live())
