"""The command line of the image: build it under a name of one's own, and say what is in it."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from load.container.engine import Buildah, Engine, Image, find_engine
from load.stack.errors import SetupError, StackError
from load.stack.terminal import say

FAILED, UNUSABLE = 1, 2
SBOM = "/opt/tidegate/sbom.cdx.json"
"""In the image: what is in it, as CycloneDX."""
READ_SECONDS = 60.0


def sbom(engine: Engine, image: Image) -> str:
    """Return what is in an image, as CycloneDX JSON. Raises StackError if it does not say."""
    with engine.start(image, [SBOM], entrypoint=["cat"]) as container:
        if container.wait(READ_SECONDS):
            raise StackError(f"{image.name} has no {SBOM}: {container.output}")
        return container.output


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the image and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m load.container",
        description="Builds docker/Dockerfile with Docker, Podman, or Buildah without a daemon.",
    )
    parser.add_argument("--base-only", action="store_true", help="put the base where builds find it, and no more")
    parser.add_argument("--tag", default="localhost/tidegate:latest", help="name of the image (default: %(default)s)")
    parser.add_argument("--sbom", type=Path, help="write what is in the image to this file, as CycloneDX JSON")
    options = parser.parse_args(arguments)
    try:
        engine = find_engine()
        if options.base_only:
            engine.provide_base()
            return 0
        image = engine.build(options.tag)
        told = [f"built by {engine.name}"]
        if options.sbom is not None:
            options.sbom.write_text(sbom(engine, image), encoding="utf-8")
            told.append(f"what is in it: {options.sbom}")
        if isinstance(engine, Buildah):
            with tempfile.TemporaryDirectory(prefix="tidegate-image-") as folder:
                digest, size = engine.packed(image, Path(folder))
            told.append(f"{size / 1e6:.0f} MB compressed, {digest}")
    except SetupError as error:
        say(str(error))
        return UNUSABLE
    except StackError as error:
        say(str(error))
        return FAILED
    print(f"{image.name}: {', '.join(told)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
