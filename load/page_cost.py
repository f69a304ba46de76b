"""What the live page costs a browser with 1,000 event types: `python -m load.page_cost`.

A view in which every type changes every second, which no real bridge's does, before Debian's Chromium. Told is for how
long each update keeps the page's main thread (parsing, counting, writing, drawing; not the layout after it), and the
bytes it was sent.
"""

import argparse
import asyncio
import os
import statistics
import sys

from playwright.async_api import async_playwright

from load import browser
from load.told_view import ToldView
from proxy.operations.admin import Admin
from proxy.operations.stream import Stream
from proxy.settings import AdminSettings

UPDATE_GOAL_MS, PAGE_GOAL_BYTES = 8.0, 1_000_000


async def _measure(types: int, updates: int) -> tuple[list[float], int]:
    view = ToldView(types)
    stream = Stream(view)
    admin = Admin(AdminSettings(listen="127.0.0.1:0"), status=dict, families=list, stream=stream)
    tasks = [asyncio.create_task(stream.run()), asyncio.create_task(admin.run())]
    try:
        async with asyncio.timeout(60 + 2 * updates), async_playwright() as playwright:
            while admin.port is None:  # noqa: ASYNC110 - seen by looking
                await asyncio.sleep(0.01)
            seen = await playwright.chromium.launch(executable_path=browser.provide(), args=["--no-sandbox"])
            page = await seen.new_page(viewport={"width": 1280, "height": 900})
            answer = await page.goto(f"http://127.0.0.1:{admin.port}/")
            assert answer is not None
            sent = len(await answer.body()) + len(view.whole())
            wait = "(count) => performance.getEntriesByName('update').length > count"
            await page.wait_for_function(wait, arg=updates, timeout=2000 * updates + 30_000)
            took = await page.evaluate("performance.getEntriesByName('update').map((one) => one.duration)")
            await seen.close()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return took[1:], sent  # the first one makes everything


def main() -> int:
    """Measure and print; return 0 if the goals are met."""
    parser = argparse.ArgumentParser(prog="python -m load.page_cost", description=__doc__)
    parser.add_argument("--types", type=int, default=1_000)
    parser.add_argument("--updates", type=int, default=30)
    options = parser.parse_args()
    took, sent = asyncio.run(_measure(options.types, options.updates))
    median = statistics.median(took)
    print(
        f"{options.types} types, load {os.getloadavg()[0]:.1f}: an update takes {median:.1f} ms in the median, "
        f"{max(took):.1f} ms at most of {len(took)}; page and first event have {sent:,} bytes"
    )
    return 0 if median <= UPDATE_GOAL_MS and sent <= PAGE_GOAL_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
