"""The image of `docker/Dockerfile`: what it promises, and that what it promises is enough to move events."""

import gzip
import json
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from load.container import Engine, Image, Mount, Running
from load.container.__main__ import sbom
from load.stack import Stack, ports
from tests.support.tidegate import Ends, until

pytestmark = pytest.mark.timeout(1200)  # the first test waits for the build

SETTINGS_FILE = "/etc/tidegate/tidegate.yaml"
METRICS = "/var/lib/tidegate"
SECONDS = 30.0

SETTINGS = {
    "log": {"hosts": ["127.0.0.1:9"], "group": "image"},
    "broker": {"hosts": ["127.0.0.1:9"]},
    "routes": {"main": {"exchange": ""}},
    "event_types": {"order-confirmed": {"class": "P1", "route": "main", "routing_key": "orders"}},
}


def settings_file(folder: Path, settings: object) -> Mount:
    path = folder / "tidegate.yaml"
    path.write_text(yaml.safe_dump(settings))
    return Mount(path, SETTINGS_FILE)


@contextmanager
def started(engine: Engine, image: Image, *arguments: str, mounts: Sequence[Mount]) -> Iterator[Running]:
    with engine.start(image, arguments, mounts=mounts) as container:
        try:
            yield container
        finally:
            print(container.output)  # noqa: T201 - seen with a failure only


def run(
    engine: Engine, image: Image, *arguments: str, mounts: Sequence[Mount] = (), entrypoint: Sequence[str] = ()
) -> tuple[int, str]:
    with engine.start(image, arguments, mounts=mounts, entrypoint=entrypoint) as container:
        return container.wait(SECONDS), container.output


def shell(engine: Engine, image: Image, script: str, *, mounts: Sequence[Mount] = ()) -> str:
    code, output = run(engine, image, "-euc", script, mounts=mounts, entrypoint=["/bin/sh"])
    assert code == 0, output
    return output


def test_tidegate_itself_is_started_when_the_container_starts(image: Image) -> None:
    assert image.entrypoint == ("tidegate",)
    assert image.command == ("run", "-c", SETTINGS_FILE)
    assert image.health_check == ("tidegate", "health", "-c", SETTINGS_FILE)
    assert image.volumes == (METRICS,)


def test_user_is_a_number_without_rights_when_the_container_runs(engine: Engine, image: Image) -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", image.user)
    told = shell(engine, image, "id -u; id -g; id -G; sed -n 's/^CapEff:\\t//p' /proc/self/status").split()
    user, group = image.user.split(":")
    assert told == [user, group, group, "0" * 16]


def test_only_the_metric_folder_is_writable_when_the_root_is_read_only(
    engine: Engine, image: Image, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    find = "find / -xdev -path /proc -prune -o -path /dev -prune -o -writable ! -type l -print 2>/dev/null"
    told = shell(engine, image, f"{find} || true; touch {METRICS}/it", mounts=[Mount(tmp_path, METRICS, writable=True)])
    assert set(told.split()) <= {METRICS}
    assert (tmp_path / "it").stat().st_uid == int(image.user.partition(":")[0])


def test_nothing_of_the_build_remains_when_the_image_is_done(engine: Engine, image: Image) -> None:
    left = shell(engine, image, "ls -d /source /tools /wheel /etc/pip.conf /run/secrets 2>/dev/null || true")
    assert left == ""
    assert not [name for name in image.environment if name.startswith("PIP_") or "PROXY" in name.upper()]
    assert shell(engine, image, "ls /opt/tidegate/bin").split().count("pip") == 0


INSTALLED = """
from importlib.metadata import distributions
print(*sorted(f"{one.name.lower()} {one.version}" for one in distributions()), sep="\\n")
"""


def test_everything_in_the_image_has_its_version_in_the_sbom_when_it_is_read(engine: Engine, image: Image) -> None:
    told = json.loads(sbom(engine, image))
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    components = told["components"]
    debian = {f"{one['name']} {one['version']}" for one in components if one.get("purl", "").startswith("pkg:deb/")}
    python = [one["version"] for one in components if one.get("purl", "").startswith("pkg:generic/python@")]
    others = {f"{one['name'].lower()} {one['version']}" for one in components if one["bom-ref"].count("==") == 1}
    inside = run(engine, image, "-c", INSTALLED, entrypoint=["/opt/tidegate/bin/python3"])[1].splitlines()
    assert others == {*inside}
    assert [one for one in inside if one.startswith("tidegate ")]
    packages = shell(engine, image, "dpkg-query --show --showformat='${Package} ${Version}\\n'").splitlines()
    assert debian == {*packages}
    assert f"Python {python[0]}" == shell(engine, image, "python3 --version").strip()


def test_the_sbom_tells_nothing_of_its_time_when_it_is_read(engine: Engine, image: Image) -> None:
    told = json.loads(sbom(engine, image))
    assert "serialNumber" not in told
    assert "timestamp" not in told["metadata"]
    assert told["metadata"]["component"]["version"] in shell(engine, image, "tidegate --version")


def test_what_tidegate_adds_is_small_and_holds_no_spark_when_no_extras_are_asked_for(
    engine: Engine, image: Image
) -> None:
    kilobytes = int(shell(engine, image, "du -sk /opt/tidegate").split()[0])
    assert kilobytes < 100_000
    code, _ = run(engine, image, "-c", "import pyspark", entrypoint=["python3"])
    assert code == 1


def test_check_accepts_the_settings_when_they_are_right(engine: Engine, image: Image, tmp_path: Path) -> None:
    code, output = run(engine, image, "check", "-c", SETTINGS_FILE, mounts=[settings_file(tmp_path, SETTINGS)])
    assert code == 0, output
    assert "order-confirmed" in output


def test_check_names_the_mistake_when_the_settings_are_wrong(engine: Engine, image: Image, tmp_path: Path) -> None:
    mount = settings_file(tmp_path, SETTINGS | {"brokre": {}})
    code, output = run(engine, image, "check", "-c", SETTINGS_FILE, mounts=[mount])
    assert code == 2, output
    assert "brokre" in output
    assert "Traceback" not in output


def test_health_check_fails_when_tidegate_does_not_run(engine: Engine, image: Image, tmp_path: Path) -> None:
    nobody = {"admin": {"listen": f"127.0.0.1:{ports.choose(['admin'])['admin']}"}}
    first, *rest = image.health_check
    code, output = run(engine, image, *rest, mounts=[settings_file(tmp_path, SETTINGS | nobody)], entrypoint=[first])
    assert code == 1, output


async def test_every_event_arrives_and_the_stop_is_orderly_when_it_bridges_real_brokers(
    engine: Engine, image: Image, stack: Stack, tmp_path: Path
) -> None:
    metrics = tmp_path / "metrics"
    metrics.mkdir()
    metrics.chmod(0o777)
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(), await ends.queue()
        settings = ends.settings(
            {topic: {"routing_key": queue}},
            admin={"listen": f"127.0.0.1:{ports.choose(['admin'])['admin']}"},
            metric_log={"folder": METRICS},
        )
        mounts = [settings_file(tmp_path, settings), Mount(metrics, METRICS, writable=True)]
        with started(engine, image, *image.command, mounts=mounts) as tidegate:
            values = [b"%d" % number for number in range(2_000)]
            await ends.produce(topic, values)
            assert [message.body for message in await ends.receive(queue, len(values))] == values
            first, *rest = image.health_check
            assert run(engine, image, *rest, mounts=mounts, entrypoint=[first])[0] == 0
            assert tidegate.is_running, tidegate.output
            tidegate.send(signal.SIGTERM)
            await until(lambda: not tidegate.is_running)
            assert tidegate.wait(SECONDS) == 0, tidegate.output
            assert "Traceback" not in tidegate.output
        assert await ends.committed(topic) == len(values)
        assert await ends.depth(queue) == 0
    files = [*metrics.iterdir()]
    assert {file.stat().st_uid for file in files} == {int(image.user.partition(":")[0])}
    lines = [line for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]
    assert {"start", "class", "stop"} <= {json.loads(line)["kind"] for line in lines}
