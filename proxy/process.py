"""One Tidegate process: the adapters, the app between them, and what runs beside it."""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Iterable
from itertools import chain

from prometheus_client.metrics_core import Metric

from proxy.access import admin_access, log_access
from proxy.app import App
from proxy.kafka_log import KafkaBoard, KafkaLog
from proxy.operations.access import access_families
from proxy.operations.admin import Admin
from proxy.operations.metric_log import metric_log_families
from proxy.rabbitmq import RabbitBroker
from proxy.recording import MetricLog
from proxy.settings import Settings


async def serve(
    settings: Settings, stopping: Callable[[Callable[[], None]], None], further: Callable[[], Iterable[Metric]]
) -> None:
    """Run one Tidegate process until `stopping`'s callback, the orderly stop, is called; `further` adds to /metrics."""
    instance = f"{socket.gethostname()}-{os.getpid()}-{int(time.time())}"
    metric_log = MetricLog(settings.metric_log, wall=time.time, instance=instance)
    log_login, admin_login = log_access(settings.log.security), admin_access(settings.admin)
    board = KafkaBoard(settings.log, access=log_login)
    broker = RabbitBroker(settings.broker, settings.routes, settings.limits)
    app = App(
        settings,
        KafkaLog(settings.log, settings.limits, access=log_login),
        {name: broker.lane(name) for name in settings.routes},
        broker.dead_letter_lane(),
        broker.monitor(),
        write=metric_log.write,
        instance=instance,
        insights=broker.insights(),
        board=board,
    )
    stopping(app.stop)

    def families() -> Iterable[Metric | None]:
        access = access_families([log_login, broker.access, admin_login])
        own = chain(app.status.families(), app.totals.families(), app.liveness.families(), admin.doors.families())
        return chain(own, access, metric_log_families(metric_log), further())

    admin = Admin(
        settings.admin,
        status=app.status.ready,
        faults=app.liveness.faults,
        families=families,
        scaling=app.steering.wanted.told,
        state=app.state.told,
        access=admin_login,
    )
    async with asyncio.TaskGroup() as side_tasks:
        beside = [
            side_tasks.create_task(metric_log.run(), name="metric log"),
            side_tasks.create_task(admin.run(), name="admin"),
            side_tasks.create_task(log_login.run(), name="log access"),
            side_tasks.create_task(admin_login.run(), name="admin access"),
            side_tasks.create_task(broker.keep_access(), name="broker access"),
        ]
        try:
            await app.run()
        finally:
            await board.close()
            await metric_log.close()
            for task in beside:
                task.cancel()
