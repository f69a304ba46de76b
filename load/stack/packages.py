"""What the nodes are made of, Java, Kafka's jars, RabbitMQ's scripts: found, or put there where that is permitted."""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from load.stack import jars
from load.stack.cache import exclusively, run_tool
from load.stack.errors import SetupError
from load.stack.terminal import say

POM = Path(__file__).with_name("pom.xml")
SBIN_VARIABLE = "TIDEGATE_RABBITMQ_SBIN"
SBIN_PATTERN = "rabbitmq_server-*/sbin"
SERVERS = Path("/usr/lib/rabbitmq/lib")
JVMS = Path("/usr/lib/jvm")
LEAST_JAVA = 17
APT_SECONDS = 900.0
ASK_SECONDS = 30.0

# What apt is asked for, the first that it knows. A runtime does: nothing is compiled.
PACKAGES = {
    "Java 17 or later": ("openjdk-21-jre-headless", "openjdk-17-jre-headless"),
    "Maven": ("maven",),
    "RabbitMQ": ("rabbitmq-server",),
}
JAVA, MAVEN, RABBITMQ = PACKAGES


@dataclass(frozen=True)
class Software:
    """The programs of a stack."""

    java: Path
    jars: Path
    rabbitmq_sbin: Path


def provide(rabbitmq_sbin: Path | None) -> Software:
    """Return everything a stack needs, installing and fetching what is missing.

    Raises SetupError, saying what to install, where that is not permitted or fails.
    """
    install_missing(lambda: missing(rabbitmq_sbin))
    java, sbin = find_java(), chosen_rabbitmq(rabbitmq_sbin)
    assert java is not None, "it was missing, or is there"
    assert sbin is not None, "likewise"
    return Software(java=java, jars=kafka_jars(), rabbitmq_sbin=sbin)


def install_missing(missing: Callable[[], list[str]]) -> None:
    """Install what is missing of `PACKAGES`. Raises SetupError, saying what to install, if that can't be done here."""
    if missing():
        with exclusively("packages"):
            _install(missing())  # another script may have put it there meanwhile
        if lacking := missing():
            raise SetupError(f"apt-get says it is done, but {' and '.join(lacking)} can't be found.")


def lacks_java_for_good() -> bool:
    """Tell whether there is no Java and none can be installed: then only containers are left."""
    return find_java() is None and not may_install()


def missing(rabbitmq_sbin: Path | None) -> list[str]:
    """Return which of `PACKAGES` this machine lacks; Maven counts only while Kafka's jars must still be fetched.

    Raises SetupError when a folder of RabbitMQ's scripts was named and isn't one.
    """
    lacking = missing_for(jar_folder())
    if chosen_rabbitmq(rabbitmq_sbin) is None:
        lacking.append(RABBITMQ)
    return lacking


def missing_for(*folders: Path) -> list[str]:
    """Return what this machine lacks to run the jars in these folders, and to fetch those that are not there yet."""
    lacking = [] if find_java() else [JAVA]
    if not all(folder.exists() for folder in folders) and not shutil.which("mvn"):
        lacking.append(MAVEN)
    return lacking


def find_java() -> Path | None:
    """Return a java of version 17 or later."""
    home, in_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    named = [*([Path(home, "bin", "java")] if home else []), *([Path(in_path)] if in_path else [])]
    for candidate in (*named, *sorted(JVMS.glob("*/bin/java"), reverse=True)):
        if candidate.is_file() and _java_version(candidate) >= LEAST_JAVA:
            return candidate
    return None


def chosen_rabbitmq(named: Path | None) -> Path | None:
    """Return the scripts to use: those named, those of the environment, the system's, in this order."""
    if named is None and os.environ.get(SBIN_VARIABLE):
        named = Path(os.environ[SBIN_VARIABLE])
    if named is None:
        return find_rabbitmq()
    if not (named / "rabbitmq-server").exists() or not (named / "rabbitmqctl").exists():
        raise SetupError(f"{named} holds no rabbitmq-server and rabbitmqctl: --rabbitmq-sbin takes the folder of both.")
    return named.resolve()


def find_rabbitmq() -> Path | None:
    """Return the folder of the scripts that RabbitMQ ships; a distribution's wrappers of them insist on a user."""
    found = sorted(SERVERS.glob(SBIN_PATTERN))
    return found[-1] if found else None


def jar_folder() -> Path:
    """Return where Kafka's jars are kept."""
    return jars.folder_of("kafka", POM)


def kafka_jars() -> Path:
    """Return the folder of Kafka's jars, fetched by Maven the first time. Raises SetupError when Maven can't."""
    return jars.fetched("kafka", POM, what="Kafka's jars", megabytes=43)


def may_install() -> bool:
    """Tell whether apt may be used here."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(packages: Sequence[str | tuple[str, ...]]) -> None:
    """Install Debian packages, of each tuple the first that apt knows. Raises SetupError with apt's last lines."""
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=300"]
    run_tool([*apt, "update"], seconds=APT_SECONDS, purpose="apt-get can't update its lists")
    names = [package if isinstance(package, str) else _known(package) for package in packages]
    install = [*apt, "install", "-y", "--no-install-recommends", *names]
    run_tool(install, seconds=APT_SECONDS, purpose=f"apt-get can't install {' '.join(names)}")


def _install(lacking: Sequence[str]) -> None:
    if not lacking:
        return
    if not may_install():
        wanted = " ".join(PACKAGES[thing][-1] for thing in lacking)
        raise SetupError(
            f"The local stack needs {' and '.join(lacking)}: "
            f"run `sudo apt-get install {wanted}`, or what installs them here, and repeat."
        )
    say(f"Installing what the local stack needs with apt-get: {', '.join(lacking)} ...")
    apt_install([PACKAGES[thing] for thing in lacking])


def _known(candidates: Sequence[str]) -> str:
    """Return the first package that apt could install, else the last.

    `madison` lists versions there are; `show` also knows packages that others merely refer to.
    """
    for name in candidates[:-1]:
        command = ["apt-cache", "madison", name]
        if subprocess.run(command, check=False, capture_output=True, timeout=ASK_SECONDS).stdout.strip():
            return name
    return candidates[-1]


@functools.cache
def _java_version(java: Path) -> int:
    try:
        told = subprocess.run([java, "-version"], check=False, capture_output=True, text=True, timeout=ASK_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(\d+)', told.stderr)
    return int(match[1]) if match else 0
