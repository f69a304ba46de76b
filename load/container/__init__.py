"""The image of `docker/Dockerfile`, built and run with what the machine has: Docker, Podman, or Buildah without any daemon.

On the command line `python -m load.container`, in Python `find_engine`.
"""

from load.container.engine import Engine, Image, Mount, Running, find_engine

__all__ = ["Engine", "Image", "Mount", "Running", "find_engine"]
