"""Independent queries side by side: each small one leaves most of the machine idle while it is planned."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

SIDE_BY_SIDE = 4
"""So many queries are planned and run at a time."""


def together(tasks: Iterable[Callable[[], object]]) -> None:
    """Run all. After a failure no more are started, those that run end first, and the failure is raised."""
    pool = ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="query")
    try:
        running = [pool.submit(task) for task in tasks]
        for done in wait(running, return_when=FIRST_EXCEPTION).done:
            done.result()
    except Exception:
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # an interrupt waits for nobody
