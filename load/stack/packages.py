"""What the nodes are made of: Java, Maven, Kafka's jars, RabbitMQ's scripts; found, or put there where the machine permits it."""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from load.stack.errors import SetupError
from load.stack.processes import tail

POM = Path(__file__).with_name("pom.xml")
SBIN_VARIABLE = "TIDEGATE_RABBITMQ_SBIN"
SBIN_PATTERN = "rabbitmq_server-*/sbin"
SERVERS = Path("/usr/lib/rabbitmq/lib")
LEAST_JAVA = 17
APT_SECONDS = 900.0
MAVEN_SECONDS = 600.0

# What apt is asked for, the first that it knows; a JRE does, Kafka's jars are not compiled.
PACKAGES = {
    "Java": ("openjdk-21-jre-headless", "openjdk-17-jre-headless"),
    "Maven": ("maven",),
    "RabbitMQ": ("rabbitmq-server",),
}


@dataclass(frozen=True)
class Software:
    """The programs of a stack."""

    java: Path
    jars: Path
    rabbitmq_sbin: Path


def say(text: str) -> None:
    """Tell the person at the terminal; standard output belongs to results and to the command of `run`."""
    print(text, file=sys.stderr, flush=True)


def cache() -> Path:
    """Return the folder of what is fetched once per user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidegate"


def provide(rabbitmq_sbin: Path | None) -> Software:
    """Return everything a stack needs, installing and fetching what is missing.

    Raises SetupError, saying what to install, where that is not permitted or fails.
    """
    rabbitmq_sbin = rabbitmq_sbin or (Path(os.environ[SBIN_VARIABLE]) if os.environ.get(SBIN_VARIABLE) else None)
    if rabbitmq_sbin is not None and not (rabbitmq_sbin / "rabbitmq-server").exists():
        raise SetupError(
            f"{rabbitmq_sbin} holds no rabbitmq-server; --rabbitmq-sbin takes the folder of RabbitMQ's scripts"
        )
    if missing(rabbitmq_sbin):
        with exclusively("packages"):
            lacking = missing(rabbitmq_sbin)  # another script may have put it there meanwhile
            if lacking:
                _install(lacking)
    java, sbin = find_java(), rabbitmq_sbin or find_rabbitmq()
    assert java is not None
    assert sbin is not None
    return Software(java=java, jars=kafka_jars(), rabbitmq_sbin=sbin.resolve())


def missing(rabbitmq_sbin: Path | None) -> list[str]:
    """Return which of Java, Maven and RabbitMQ this machine lacks; Maven only counts while Kafka's jars must be fetched."""
    lacking = [] if find_java() else ["Java"]
    if not jar_folder().exists() and not shutil.which("mvn"):
        lacking.append("Maven")
    if rabbitmq_sbin is None and find_rabbitmq() is None:
        lacking.append("RabbitMQ")
    return lacking


def find_java() -> Path | None:
    """Return a java of version 17 or later."""
    named = [os.environ.get("JAVA_HOME", "") + "/bin/java", shutil.which("java") or ""]
    for candidate in (*map(Path, named), *sorted(Path("/usr/lib/jvm").glob("*/bin/java"), reverse=True)):
        if candidate.is_file() and _java_version(candidate) >= LEAST_JAVA:
            return candidate
    return None


def find_rabbitmq() -> Path | None:
    """Return the folder of the scripts as RabbitMQ ships them; a distribution's wrappers in the path insist on their own user."""
    found = sorted(SERVERS.glob(SBIN_PATTERN))
    return found[-1] if found else None


def jar_folder() -> Path:
    """Return where the jars of exactly this pom.xml are kept."""
    return cache() / f"kafka-{hashlib.sha256(POM.read_bytes()).hexdigest()[:12]}"


def kafka_jars() -> Path:
    """Return the folder of Kafka's jars, fetched by Maven the first time. Raises SetupError when Maven can't."""
    folder = jar_folder()
    if folder.exists():
        return folder
    with exclusively("jars"):
        if folder.exists():
            return folder
        say("Fetching Kafka's jars with Maven (about 43 MB, once) ...")
        with tempfile.TemporaryDirectory(dir=cache(), prefix="kafka-") as fresh:
            command = ["mvn", "-q", "-B", "--strict-checksums", "-f", str(POM), "dependency:copy-dependencies"]
            jars = Path(fresh) / "jars"
            _run(
                [*command, f"-DoutputDirectory={jars}"], seconds=MAVEN_SECONDS, purpose="Maven can't fetch Kafka's jars"
            )
            jars.rename(folder)
    return folder


@contextlib.contextmanager
def exclusively(purpose: str) -> Iterator[None]:
    """Let one script at a time change what all share; the lock ends with the script, however that ends."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{purpose}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def apt_install(packages: Sequence[str]) -> None:
    """Install Debian packages. Raises SetupError with apt's last words."""
    options = ["-o", "DPkg::Lock::Timeout=300"]
    _run(["apt-get", *options, "update"], seconds=APT_SECONDS, purpose="apt-get update failed")
    install = ["apt-get", *options, "install", "-y", "--no-install-recommends", *packages]
    _run(install, seconds=APT_SECONDS, purpose=f"apt-get can't install {' '.join(packages)}")


def may_install() -> bool:
    """Tell whether apt may be used here."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install(lacking: Sequence[str]) -> None:
    if not may_install():
        wanted = " ".join(PACKAGES[thing][-1] for thing in lacking)
        raise SetupError(
            f"The local stack needs {' and '.join(lacking)}: run `sudo apt-get install {wanted}` (or what installs them here) and repeat."
        )
    say(f"Installing what the local stack needs with apt-get: {', '.join(lacking)} ...")
    apt_install([_known(PACKAGES[thing]) for thing in lacking])
    still = [thing for thing in lacking if thing in missing(None)]
    if still:
        raise SetupError(f"apt-get installed {', '.join(lacking)}, but {' and '.join(still)} can't be found.")


def _known(candidates: Sequence[str]) -> str:
    """Return the first package that apt could install."""
    for name in candidates[:-1]:
        shown = subprocess.run(["apt-cache", "show", name], check=False, capture_output=True)
        if shown.returncode == 0:
            return name
    return candidates[-1]


def _java_version(java: Path) -> int:
    try:
        told = subprocess.run([java, "-version"], check=False, capture_output=True, text=True, timeout=30).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(\d+)', told)
    return int(match[1]) if match else 0


def _run(command: Sequence[str], *, seconds: float, purpose: str) -> None:
    log = cache() / "setup.log"
    with log.open("w") as output:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        try:
            done = subprocess.run(
                command, check=False, timeout=seconds, env=environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise SetupError(f"{purpose}: not done after {seconds:.0f} s ({log})") from error
    if done.returncode:
        raise SetupError(f"{purpose} ({log}):\n{tail(log)}")
