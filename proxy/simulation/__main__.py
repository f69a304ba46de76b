"""Fault histories from the command line; see `faults.command`."""

import sys

from proxy.simulation.faults.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
