"""Long answers in short steps: whoever asks for thousands of lines never holds up the data."""

import asyncio
import time
from collections.abc import Callable

STEP_SECONDS = 0.004
"""Of processor time that one step of the loop may take, but for the piece that it ends with."""
PIECE = 32
"""Lines, or event types, between two looks at the clock: a fraction of a millisecond."""


class Steps:
    """One answer's; `clock` gives the processor time of this thread in seconds."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._begun = clock()

    async def pause(self) -> None:
        """Let everything else go on if this step has lasted long enough; call after every piece."""
        if self._clock() - self._begun >= STEP_SECONDS:
            await asyncio.sleep(0)
            self._begun = self._clock()
