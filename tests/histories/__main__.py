"""Fault histories from the command line; see `command`."""

import sys

from tests.histories.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
