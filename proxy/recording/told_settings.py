"""What the records `start` and `settings` tell of the settings: by them reports know what was in force when."""

from proxy import records
from proxy.congestion.buckets import DIGITS, HIGHEST_US, LOWEST_US
from proxy.recording.steering_settings import steering_settings
from proxy.records import Layout, RoutePlan, Slo
from proxy.settings import Settings


def at_start(settings: Settings, version: str) -> records.Start:
    """Return the record of a process that begins with these settings; `version` is Tidegate's."""
    told = in_force(settings)
    return records.Start(
        version=version,
        layout=Layout(unit="us", lowest=LOWEST_US, highest=HIGHEST_US, digits=DIGITS),
        classes=list(settings.classes),
        routes=told.routes,
        settings=told.settings,
        slos=told.slos,
    )


def in_force(settings: Settings) -> records.SettingsInForce:
    """Return the record of other settings that come into force; equal ones tell the same."""
    return records.SettingsInForce(
        routes={
            name: RoutePlan(policy=route.policy, queues=list(route.queue_names))
            for name, route in settings.routes.items()
        },
        settings=steering_settings(settings),
        slos={
            name: Slo(within_s=one.slo.within, share=one.slo.share, judges=one.slo.judges)
            for name, one in settings.classes.items()
            if one.slo is not None
        }
        or None,
    )
