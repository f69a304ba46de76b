"""Java programs that Maven fetches, once per user: the jars of a pom.xml and all that they need."""

import hashlib
from pathlib import Path

from load.stack.cache import cache, made_once, run_tool
from load.stack.terminal import say

MAVEN_SECONDS = 1_200.0


def folder_of(name: str, pom: Path) -> Path:
    """Return where the jars of exactly this pom.xml are kept, fetched or not."""
    return cache() / f"{name}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"


def fetched(name: str, pom: Path, *, what: str, megabytes: int) -> Path:
    """Return the folder of the jars, fetched the first time. Raises SetupError when Maven can't."""

    def fetch(into: Path) -> None:
        say(f"Fetching {what} with Maven (about {megabytes} MB, once) ...")
        maven = ["mvn", "-q", "-B", "--strict-checksums", "-f", str(pom), "dependency:copy-dependencies"]
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={into}"]
        run_tool([*maven, *options], seconds=MAVEN_SECONDS, purpose=f"Maven can't fetch {what}")

    return made_once(folder_of(name, pom), fetch)
