"""One Tidegate process: the adapters, the app between them, and what runs beside it."""

import asyncio
import time
from collections.abc import Callable, Iterable
from itertools import chain

from prometheus_client.metrics_core import Metric

from proxy.access import Access, admin_access, log_access, nakadi_access, notice_access
from proxy.app import App
from proxy.bridge.event_log import EventLog
from proxy.bridge.observer import UNOBSERVED
from proxy.bridge.returns import Returns
from proxy.instance import instance_name
from proxy.kafka_log import KafkaBoard, KafkaLog, NoticeTopic
from proxy.nakadi_log import NakadiLog
from proxy.operations.access import access_families
from proxy.operations.admin import Admin
from proxy.operations.desk import Desk
from proxy.operations.metric_log import metric_log_families
from proxy.operations.notices import Destination
from proxy.operations.reload import Files, Reload
from proxy.operations.retention import retention_families
from proxy.operations.shadow import shadow_families
from proxy.operations.stream import Stream
from proxy.operations.webhook import WebhookDestination
from proxy.rabbitmq import RabbitBroker
from proxy.recording import MetricLog
from proxy.settings import Settings
from proxy.tasks import Tasks
from proxy.tracing import made


async def serve(
    settings: Settings,
    files: Files,
    signals: Callable[[Callable[[], None], Callable[[], None]], None],
    further: Callable[[], Iterable[Metric]],
) -> None:
    """Run one Tidegate process until the first callback that `signals` is given, the orderly stop, is called.

    Its second one has the settings read from the `files` again; `further` adds to /metrics.
    """
    instance = instance_name()
    traces = None if settings.traces.endpoint is None else made(settings.traces, instance, wall=time.time)
    metric_log = MetricLog(settings.metric_log, wall=time.time, instance=instance)
    log, log_login, boards = _log(settings)
    admin_login = admin_access(settings.admin)
    broker = RabbitBroker(settings.broker, settings.routes, settings.limits)
    app = App(
        settings,
        log,
        broker.lanes(settings.routes),
        broker.dead_letter_lane(),
        broker.monitor(),
        write=metric_log.write,
        instance=instance,
        insights=broker.insights(),
        returns=Returns(broker.finder()),
        observer=traces or UNOBSERVED,
        board=boards[0] if boards else None,
        notices=_destination(settings, log_login),
        maker=broker,
    )
    reload = Reload(files, app.in_force, app.go_by, wall=time.time, look=app.look_soon)
    signals(app.stop, reload.ask)

    def families() -> Iterable[Metric | None]:
        """Return what /metrics tells, of all parts."""
        access = access_families([log_login, broker.access, admin_login])
        own = chain(
            app.status.families(),
            app.totals.families(),
            app.liveness.families(),
            admin.doors.families(),
            reload.families(),
        )
        left = retention_families(app.retention, app.assignment.listeners.values())
        told = () if app.notices is None else app.notices.families()
        shadow = shadow_families(app.steering.policies.shadows)
        spans = () if traces is None else traces.families()
        return chain(own, left, told, shadow, spans, access, metric_log_families(metric_log), further())

    stream = Stream(app.view)
    admin = Admin(
        settings.admin,
        status=app.status.ready,
        faults=app.liveness.faults,
        families=families,
        scaling=app.steering.wanted.told,
        state=app.state.told,
        stream=stream,
        desk=Desk(lambda: app.in_force.settings, boards[1]) if boards else None,
        reload=reload,
        access=admin_login,
    )
    beside = Tasks()
    async with asyncio.TaskGroup() as beside.group:
        beside.spawn(metric_log.run(), "metric log")
        beside.spawn(admin.run(), "admin")
        beside.spawn(stream.run(), "stream")
        beside.spawn(reload.run(), "reload")
        beside.spawn(log_login.run(), "log access")
        beside.spawn(admin_login.run(), "admin access")
        beside.spawn(broker.keep_access(), "broker access")
        if app.notices is not None:
            beside.spawn(app.notices.run(), "notices")
        try:
            await app.run()
        finally:
            if app.notices is not None:
                await app.notices.finish()
            if traces is not None:
                await traces.close()
            await metric_log.close()
            beside.cancel()
            for board in boards:
                await board.close()


def _log(settings: Settings) -> tuple[EventLog, Access, list[KafkaBoard]]:
    """Return the log, what it is logged in to with, and two boards on it; none on a log that is not Kafka."""
    if settings.log.nakadi is not None:
        login = nakadi_access(settings.log.nakadi)
        return NakadiLog(settings.log, settings.limits, access=login), login, []
    login = log_access(settings.log.security)
    boards = [KafkaBoard(settings.log, access=login) for _ in range(2)]
    return KafkaLog(settings.log, settings.limits, access=login), login, boards


def _destination(settings: Settings, log_login: Access) -> Destination | None:
    """Return where notices go; None: nowhere."""
    webhook, topic = settings.notices.webhook, settings.notices.topic
    if webhook is not None:
        return WebhookDestination(webhook, notice_access(webhook))
    return None if topic is None else NoticeTopic(topic, settings.log, access=log_login)
