"""The command line of the image: build it under a name of one's own."""

import argparse
import sys
from collections.abc import Sequence

from load.container.engine import find_engine
from load.stack.errors import SetupError, StackError
from load.stack.terminal import say

FAILED, UNUSABLE = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the image and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m load.container",
        description="Builds docker/Dockerfile with Docker, Podman, or Buildah without a daemon.",
    )
    parser.add_argument("--base-only", action="store_true", help="put the base where builds find it, and no more")
    parser.add_argument("--tag", default="localhost/tidegate:latest", help="name of the image (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        engine = find_engine()
        if options.base_only:
            engine.provide_base()
            return 0
        image = engine.build(options.tag)
    except SetupError as error:
        say(str(error))
        return UNUSABLE
    except StackError as error:
        say(str(error))
        return FAILED
    print(f"{image.name}: built by {engine.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
