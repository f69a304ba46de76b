"""Files are read again when they have changed or somebody asks; what can't be used changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
from structlog.testing import capture_logs

from proxy.config import InForce
from proxy.errors import SettingsError
from proxy.operations import answers, endpoints
from proxy.operations.admin import Admin
from proxy.operations.reload import LOOK_SECONDS, Files, Reload
from proxy.settings import AdminSettings, BrokerSettings, EventType, Route, Settings
from proxy.simulation import virtual_time
from tests.support.process import TRAITS, settings
from tests.support.schemas import misfit


def of(*names: str, **traits: object) -> Settings:
    return settings(event_types={name: EventType(name=name, topic=name, **TRAITS | traits) for name in names})


class Disk:
    """Files that a test changes, and a reload that reads them."""

    def __init__(self) -> None:
        self.content = b"first"
        self.holds: Settings | SettingsError = of("orders")
        self.in_force = InForce(of("orders"))
        self.applied: list[Settings] = []
        self.loads = self.looks = 0
        self.pace: asyncio.Event | None = None
        """Of a slow disk: when it answers."""
        self.reload = Reload(
            Files(self._load, self._fingerprint, b"first"),
            self.in_force,
            self._apply,
            wall=lambda: 7,
            look=self._look,
        )

    def write(self, content: bytes, holds: Settings | SettingsError) -> None:
        self.content, self.holds = content, holds

    def results(self) -> dict[str, float]:
        family = next(one for one in self.reload.families() if one.name == "tidegate_reloads")
        return {sample.labels["result"]: sample.value for sample in family.samples if sample.value}

    def is_refused(self) -> float:
        family = next(one for one in self.reload.families() if one.name == "tidegate_settings_refused")
        return float(family.samples[0].value)

    async def _fingerprint(self) -> bytes:
        return self.content

    async def _load(self) -> Settings:
        self.loads += 1
        if self.pace is not None:
            await self.pace.wait()
        if isinstance(self.holds, SettingsError):
            raise self.holds
        return self.holds

    def _look(self) -> None:
        self.looks += 1

    def _apply(self, then: Settings) -> None:
        self.applied.append(then)
        self.in_force.put(then)


def lived(story: Callable[[Disk], Awaitable[None]]) -> None:
    async def live() -> None:
        disk = Disk()
        running = asyncio.create_task(disk.reload.run())
        await asyncio.sleep(0.1)
        await story(disk)
        running.cancel()

    virtual_time.run(live())


def test_nothing_is_read_when_the_files_stay_as_they_are() -> None:
    async def story(disk: Disk) -> None:
        await asyncio.sleep(10 * LOOK_SECONDS)
        assert disk.loads == 0

    lived(story)


def test_other_types_come_into_force_when_the_files_have_changed() -> None:
    async def story(disk: Disk) -> None:
        disk.write(b"second", of("orders", "mails"))
        with capture_logs() as said:
            await asyncio.sleep(LOOK_SECONDS + 2)
        assert disk.applied == [of("orders", "mails")]
        assert [(one["event"], one["added"]) for one in said] == [("settings_reloaded", "mails")]
        assert disk.results() == {"applied": 1}
        assert {one.name: one.samples[0].value for one in disk.reload.families()}[
            "tidegate_last_reload_timestamp_seconds"
        ] == 7

    lived(story)


def test_nobody_reads_half_a_file_when_it_is_being_written() -> None:
    async def story(disk: Disk) -> None:
        for count in range(20):
            disk.write(b"half %d" % count, SettingsError(["half"]))
            await asyncio.sleep(0.9)
        disk.write(b"whole", of("mails"))
        await asyncio.sleep(LOOK_SECONDS + 2)
        assert disk.results() == {"applied": 1}

    lived(story)


def test_all_stays_and_is_complained_of_once_when_the_files_are_wrong() -> None:
    async def story(disk: Disk) -> None:
        disk.write(b"wrong", SettingsError(["tidegate.yaml:3: no", "tidegate.yaml:9: neither"]))
        with capture_logs() as said:
            await asyncio.sleep(10 * LOOK_SECONDS)
        assert [one["event"] for one in said] == ["settings_not_reloaded"]
        assert said[0]["why"] == ["tidegate.yaml:3: no", "tidegate.yaml:9: neither"]
        assert (disk.applied, disk.results()) == ([], {"refused": 1})
        assert disk.in_force.refused == said[0]["why"]
        disk.write(b"right", of("mails"))
        await asyncio.sleep(LOOK_SECONDS + 2)
        assert disk.in_force.refused == ()
        assert disk.applied == [of("mails")]

    lived(story)


def test_none_of_it_is_applied_when_a_part_needs_a_restart() -> None:
    async def story(disk: Disk) -> None:
        other = settings(broker=BrokerSettings(hosts=["other:5672"]), event_types={})
        disk.write(b"more", other)
        with capture_logs() as said:
            await asyncio.sleep(LOOK_SECONDS + 2)
        assert said[0]["why"] == ["broker.hosts can't change while events are moved; restart"]
        assert (disk.applied, disk.results()) == ([], {"refused": 1})

    lived(story)


def test_what_holds_events_back_comes_into_force_when_a_route_says_otherwise() -> None:
    async def story(disk: Disk) -> None:
        other = settings(routes={"r": Route(exchange="x", policy="per_type", queues=("q1",))}, event_types={})
        disk.write(b"other", other)
        with capture_logs() as said:
            await asyncio.sleep(LOOK_SECONDS + 2)
        assert said[0]["parts"] == ["routes.r.policy: static -> per_type"]
        assert (disk.applied, disk.results()) == ([other], {"applied": 1})

    lived(story)


def test_nothing_is_read_when_a_file_was_away_for_a_moment() -> None:
    async def story(disk: Disk) -> None:
        disk.write(b"", SettingsError(["can't be read"]))
        await asyncio.sleep(LOOK_SECONDS)
        disk.write(b"first", of("orders"))
        await asyncio.sleep(3 * LOOK_SECONDS)
        assert disk.loads == 0

    lived(story)


def test_it_is_told_that_the_files_were_refused_until_they_can_be_used() -> None:
    async def story(disk: Disk) -> None:
        assert disk.is_refused() == 0
        disk.write(b"wrong", SettingsError(["no"]))
        await asyncio.sleep(LOOK_SECONDS + 2)
        assert disk.is_refused() == 1
        disk.write(b"first", of("orders"))
        await asyncio.sleep(LOOK_SECONDS + 2)
        assert (disk.is_refused(), disk.results()) == (0, {"refused": 1, "unchanged": 1})
        disk.write(b"more", settings(broker=BrokerSettings(hosts=["other:5672"]), event_types={}))
        await asyncio.sleep(LOOK_SECONDS + 2)
        assert disk.is_refused() == 1

    lived(story)


def test_whoever_asks_is_told_what_came_of_it_when_the_files_are_read() -> None:
    async def story(disk: Disk) -> None:
        disk.write(b"second", of("orders", "mails"))
        told = await disk.reload.now("ann")
        assert (told["result"], told["added"]) == ("applied", "mails")
        assert misfit(answers.RELOADED, told) == ""
        told = await disk.reload.now("ann")
        assert told["result"] == "unchanged"
        assert misfit(answers.RELOADED, told) == ""
        disk.write(b"wrong", SettingsError(["no"]))
        told = await disk.reload.now("ann")
        assert told["why"] == ["no"]
        assert misfit(answers.NOT_RELOADED, told) == ""
        await asyncio.sleep(3 * LOOK_SECONDS)
        assert disk.loads == 3, "what was read for somebody is not read again"

    lived(story)


def test_topics_are_looked_for_when_somebody_asks_though_the_files_are_the_same() -> None:
    async def story(disk: Disk) -> None:
        await disk.reload.now("ann")
        disk.reload.ask()
        await asyncio.sleep(0.5)
        assert (disk.looks, disk.applied) == (2, [])
        await asyncio.sleep(3 * LOOK_SECONDS)
        assert disk.looks == 2, "the files alone are no reason"

    lived(story)


def test_the_files_are_read_at_once_when_somebody_asks() -> None:
    async def story(disk: Disk) -> None:
        disk.reload.ask()
        await asyncio.sleep(0.5)
        assert disk.results() == {"unchanged": 1}
        disk.write(b"second", of("mails"))
        disk.reload.ask()
        await asyncio.sleep(0.5)
        assert disk.applied == [of("mails")]
        await asyncio.sleep(3 * LOOK_SECONDS)
        assert disk.loads == 2

    lived(story)


async def test_it_is_answered_over_http_what_came_of_a_reload() -> None:
    disk = Disk()
    admin = Admin(AdminSettings(listen="127.0.0.1:0"), status=dict, families=list, reload=disk.reload)
    serving = asyncio.create_task(admin.run())
    try:
        async with asyncio.timeout(5):
            while admin.port is None:  # noqa: ASYNC110 -- seen by looking
                await asyncio.sleep(0.001)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{admin.port}") as client, asyncio.timeout(5):
            disk.write(b"second", of("orders", "mails"))
            with capture_logs() as said:
                async with client.post("/reload") as answer:
                    assert (answer.status, (await answer.json())["added"]) == (200, "mails")
            assert [(one["event"], one.get("by")) for one in said] == [
                ("reload_asked", "127.0.0.1"),
                ("settings_reloaded", None),
            ]
            disk.write(b"wrong", SettingsError(["no"]))
            async with client.post("/reload") as answer:
                assert answer.status == 409
                assert misfit(endpoints.RELOAD.told[409].schema or {}, await answer.json()) == ""
            async with client.post("/reload", headers={"Origin": "http://elsewhere.example"}) as answer:
                assert answer.status == 403
            disk.pace = asyncio.Event()
            first = asyncio.create_task(client.post("/reload"))
            while not disk.reload.is_loading:  # noqa: ASYNC110 -- likewise
                await asyncio.sleep(0.001)
            async with client.post("/reload") as answer:
                assert answer.status == 429
            disk.pace.set()
            assert (await first).status == 409
            assert disk.loads == 3
    finally:
        serving.cancel()
        await asyncio.wait([serving])
