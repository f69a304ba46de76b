"""The browser that tests of the report's page use: Debian's Chromium, found, or put there where that is permitted."""

import shutil
import sys
from pathlib import Path

from load.stack.cache import exclusively
from load.stack.errors import SetupError
from load.stack.packages import apt_install, may_install
from load.stack.terminal import say

NAMES = ("chromium", "chromium-browser", "google-chrome")
PACKAGE = "chromium"


def find() -> Path | None:
    """Return a Chromium of this machine."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return Path(found) if found else None


def provide() -> Path:
    """Return a Chromium, installed if need be. Raises SetupError, saying what to install, where it may not be."""
    if found := find():
        return found
    if not may_install():
        raise SetupError(
            f"Tests of the report's page need a Chromium: run `sudo apt-get install {PACKAGE}`, or what installs it "
            "here, and repeat."
        )
    with exclusively("packages"):
        say(f"Installing {PACKAGE} with apt-get, to test the report's page in it ...")
        apt_install([PACKAGE])
    if found := find():
        return found
    raise SetupError(f"apt-get says it is done, but {PACKAGE} can't be found.")


def main() -> int:
    """Provide it; return the exit code: 0 there, 2 not, with one message."""
    try:
        print(provide())
    except SetupError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
