"""The image of `docker/Dockerfile`, built and run by Docker, Podman, or Buildah without a daemon.

On the command line `python -m load.container`, in Python `find_engine`.
"""

from load.container.engine import Engine, Image, find_engine
from load.container.running import Mount, Running

__all__ = ["Engine", "Image", "Mount", "Running", "find_engine"]
