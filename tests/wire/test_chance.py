"""A canary: nothing that the clients take of time, chance and threads may escape the seed unnoticed."""

import ast
import asyncio
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from proxy.simulation import virtual_time
from tests.wire import chance
from tests.wire.loop import WireLoop

MODULES = {"time", "random", "uuid", "secrets", "threading", "concurrent", "multiprocessing", "signal", "subprocess"}
CALLS = {
    "run_in_executor",
    "to_thread",
    "getaddrinfo",
    "urandom",
    "getpid",
    "start_tls",
    "sock_connect",
    "perf_counter",
}
UNUSED = {
    # The producer, the Kafka command line, and what `aio_pika` has for remote calls and its own reconnecting.
    "aiokafka.producer",
    "aiokafka.partitioner",
    "aiokafka.abc",
    "aiokafka.protocol.message",
    "aiokafka.record",
    "aiokafka.util",
    "aio_pika.patterns",
    "aio_pika.robust_queue",
    "aio_pika.pool",
    # What Tidegate does not ask of HTTP: other workers, WebSockets, forms, proxies, an access log of its own.
    "aiohttp.client_middleware_digest_auth",
    "aiohttp.client_ws",
    "aiohttp.multipart",
    "aiohttp.pytest_plugin",
    "aiohttp.test_utils",
    "aiohttp.web",
    "aiohttp.web_log",
    "aiohttp.web_runner",
    "aiohttp.worker",
}
SEEDED = {
    *((module, "time") for module in chance.TIME),
    *((module, "random") for module in (*chance.RANDOM, *chance.GETRANDBITS)),
    *((module, "uuid") for module in (*chance.UUID4, *chance.GETRANDBITS)),
    *((module, "time") for module in chance.MONOTONIC),
    # SASL and certificates: the loop does such work at once.
    ("aiokafka.conn", "run_in_executor"),
    ("aiormq.connection", "run_in_executor"),
}
HARMLESS = {
    # Locks that one thread takes alone, a future that nobody else sets, the name of a type.
    ("aiokafka.cluster", "threading"),
    ("aiokafka.cluster", "concurrent"),
    ("aio_pika.tools", "threading"),
    ("pamqp.encode", "time"),
    # Of HTTP: WebSockets' masks, proxies, bodies compressed or read from files, TLS, names and sockets of this machine
    # (addresses are numbers, and no socket is made), the type of a header's time.
    ("aiohttp._websocket.writer", "random"),
    ("aiohttp.client", "run_in_executor"),
    ("aiohttp.client", "to_thread"),
    ("aiohttp.client", "urandom"),
    ("aiohttp.compression_utils", "concurrent"),
    ("aiohttp.compression_utils", "run_in_executor"),
    ("aiohttp.connector", "sock_connect"),
    ("aiohttp.connector", "start_tls"),
    ("aiohttp.payload", "run_in_executor"),
    ("aiohttp.resolver", "getaddrinfo"),
    ("aiohttp.web_fileresponse", "run_in_executor"),
    ("aiohttp.web_request", "run_in_executor"),
    ("aiohttp.web_response", "concurrent"),
    ("aiohttp.web_response", "time"),
    ("aiohttp.web_urldispatcher", "run_in_executor"),
}


def taken(package: str) -> Iterator[tuple[str, str]]:
    """Yield which module takes what."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent
    for path in sorted(root.rglob("*.py")):
        module = ".".join((package, *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
        if any(module == one or module.startswith(f"{one}.") for one in UNUSED):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name.split(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [(node.module or "").split(".")[0]]
            elif isinstance(node, ast.Attribute) and node.attr in CALLS:
                names = [node.attr]
            yield from ((module, name) for name in names if name in MODULES or name in CALLS)


def test_clients_take_only_what_is_replaced_of_time_chance_and_threads_when_their_sources_are_read() -> None:
    found = {one for package in ("aiohttp", "aiokafka", "aiormq", "aio_pika", "pamqp") for one in taken(package)}
    assert found == SEEDED | HARMLESS


@pytest.mark.parametrize(
    "module",
    sorted({*chance.TIME, *chance.RANDOM, *chance.MONOTONIC, *chance.UUID4, *chance.GETRANDBITS, *chance.SETS}),
)
def test_names_are_as_before_when_the_block_has_ended(module: str) -> None:
    client = importlib.import_module(module)
    before = dict(vars(client))
    with chance.seeded(Random(1)):
        assert dict(vars(client)) != before
    assert dict(vars(client)) == before


@pytest.mark.parametrize("place", chance.CONSTANTS)
def test_a_constant_of_the_product_is_another_within_the_block_only(place: str) -> None:
    module, _, name = place.rpartition(".")
    product = importlib.import_module(module)
    before = getattr(product, name)
    with chance.seeded(Random(1), constants={place: before + 1}):
        assert getattr(product, name) == before + 1
    assert getattr(product, name) == before
    assert Path(str(product.__file__)).read_text(encoding="utf-8").count(name) > 1, "it is asked for when it is used"


def test_work_for_a_thread_is_done_at_once_when_the_loop_is_asked() -> None:
    async def ask() -> float:
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, lambda: 1 / 0)
        return loop.time()

    assert virtual_time.run(ask(), lambda: WireLoop(Random(1), turn_seconds=0)) == 0
