"""The shop of the demo: what it sends, when, what its services can take. The figures fit a busy two-core machine."""

from load.consumer import Capacity
from load.events import Kind, brand_alert, marketing, order_confirmation
from load.producer import Stream
from load.schedule import campaign, constant

EXCHANGE = "shop"
QUEUE = "shop.work"
CAPACITY = Capacity(rate=300, services=4)
"""Of all services on the queue together."""
BOUND = int(CAPACITY.rate)
"""Messages the queue takes before it rejects: one second of capacity."""
STEADY = 60.0
"""Order confirmations a second; brand alerts come as often."""
CAMPAIGN = 10 * CAPACITY.rate
"""Marketing events a second while the campaign lasts."""
CAMPAIGN_START, CAMPAIGN_RISE, CAMPAIGN_HOLD = 10.0, 2.0, 25.0
SECONDS = 60.0
SEED = 7
CLASSES = ("P1", "P2", "P3")


def kinds(run: str) -> dict[str, Kind]:
    """Return the kinds of events of one run by topic; every run has topics of its own."""
    every = (
        Kind("order-confirmation", "P1", f"{run}.orders", 3, order_confirmation),
        Kind("brand-alert", "P2", f"{run}.alerts", 3, brand_alert),
        Kind("marketing", "P3", f"{run}.campaign", 6, marketing),
    )
    return {kind.topic: kind for kind in every}


def streams(run: str) -> list[Stream]:
    """Return what the shop sends in one run: the same events at the same instants in every run."""
    orders, alerts, teasers = kinds(run).values()
    rush = campaign(CAMPAIGN, start=CAMPAIGN_START, rise=CAMPAIGN_RISE, hold=CAMPAIGN_HOLD, seconds=SECONDS)
    return [
        Stream(orders, constant(STEADY, SECONDS)),
        Stream(alerts, constant(STEADY, SECONDS)),
        Stream(teasers, rush),
    ]
