"""A RabbitMQ 4 beside the system's, for tests on both: the packages of a newer Debian, unpacked and not installed.

They need that Debian's C library, so each of their programs runs with the unpacked `/usr` mounted over the machine's.
The mount is private to the program and its children and ends with them. All else (data, /proc, /dev, network) is the
machine's.
"""

import shlex
import shutil
from pathlib import Path

from load.stack import packages
from load.stack.cache import cache, made_once, run_tool
from load.stack.errors import SetupError
from load.stack.terminal import say

SUITE = "trixie"
FETCH_SECONDS = 900.0
UNPACK_SECONDS = 120.0
TRIAL_SECONDS = 60.0
PROGRAMS = ("rabbitmq-server", "rabbitmqctl", "rabbitmq-plugins", "rabbitmq-diagnostics")

WRAPPER = """\
#!/bin/sh
# {program} of another Debian, run with that Debian's /usr; the mount is seen by this process and its children alone.
case "$RABBITMQ_DATA" in
/usr/*) echo "$RABBITMQ_DATA lies below /usr, which this RabbitMQ replaces: choose another folder" >&2; exit 1 ;;
esac
exec unshare --mount sh -c 'mount --bind "$0" /usr && exec "$@"' {usr} {scripts}/{program} "$@"
"""


def sbin() -> Path:
    """Return the folder of RabbitMQ 4's scripts, made the first time (half a minute, 220 MB).

    Raises SetupError where Debian's packages can't be reached, or mounting is not permitted.
    """
    folder = cache() / "rabbitmq-4"
    if not folder.exists():
        if not packages.may_install():
            raise SetupError("A RabbitMQ 4 of its own takes root and apt-get; point --rabbitmq-sbin at one you have.")
        lacking = [tool for tool in ("debootstrap", "unshare", "mount") if not shutil.which(tool)]
        if lacking:
            say("Installing debootstrap with apt-get ...")
            packages.apt_install(["debootstrap", "util-linux", "mount"])
        say(f"Fetching RabbitMQ 4 as packaged for Debian {SUITE} (about 60 MB, once) ...")
    return made_once(folder, lambda part: _make(part, folder)) / "sbin"


def _make(part: Path, folder: Path) -> None:
    fetched = part / "fetched"
    what = ["--variant=minbase", "--include=rabbitmq-server", SUITE, str(fetched)]
    fetch = ["debootstrap", "--download-only", *what]
    run_tool(fetch, seconds=FETCH_SECONDS, purpose=f"RabbitMQ of Debian {SUITE} can't be fetched")
    for package in sorted(fetched.glob("var/cache/apt/archives/*.deb")):
        unpack = ["dpkg-deb", "--extract", str(package), str(part / "root")]
        run_tool(unpack, seconds=UNPACK_SECONDS, purpose=f"{package.name} can't be unpacked")
    shutil.rmtree(fetched)
    (part / "root" / "usr").rename(part / "usr")
    shutil.rmtree(part / "root")
    found = sorted((part / "usr").glob(f"lib/rabbitmq/lib/{packages.SBIN_PATTERN}"))
    if not found:
        raise SetupError(f"the rabbitmq-server package of Debian {SUITE} holds no {packages.SBIN_PATTERN}")
    scripts = Path("/usr") / found[-1].relative_to(part / "usr")
    _write_wrappers(part / "sbin", usr=part / "usr", scripts=scripts)
    trial = [str(part / "sbin" / "rabbitmqctl"), "version"]
    purpose = "RabbitMQ 4 is there but does not run on this machine"
    run_tool(trial, seconds=TRIAL_SECONDS, purpose=purpose, home=part)  # Erlang leaves a cookie in any home folder
    _write_wrappers(part / "sbin", usr=folder / "usr", scripts=scripts)


def _write_wrappers(into: Path, *, usr: Path, scripts: Path) -> None:
    into.mkdir(exist_ok=True)
    for program in PROGRAMS:
        wrapper = into / program
        wrapper.write_text(WRAPPER.format(program=program, usr=shlex.quote(str(usr)), scripts=scripts))
        wrapper.chmod(0o755)
