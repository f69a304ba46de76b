"""JSON that somebody else wrote: whatever is wrong with it is one kind of error."""

import json
from typing import Any


def read_json(text: bytes | str) -> Any:
    """Return what a text says. Raises ValueError if it is no JSON, or nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
