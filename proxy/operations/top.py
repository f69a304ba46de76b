"""`tidegate top`: the four questions, classes, gates and event types of one replica or several, in a terminal."""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from proxy.errors import SettingsError
from proxy.operations.deadline import within
from proxy.operations.top_links import AwayError, Link, context
from proxy.operations.top_sum import Sum, summed

FIRST_SECONDS = 10.0
"""A first answer may take so long, until it is whole."""
TOKEN = "TIDEGATE_ADMIN_TOKEN"  # noqa: S105 - the name of an environment variable
_DONE, _PARTLY = 0, 1
_DESCRIPTION = """
What is late, why, what may be dropped, is it getting better: classes, gates and event types of one replica, or of
several summed up, every second. It asks the admin address of each (--admin, repeatable) and changes nothing.
"""
_EPILOG = f"""
keys: w o n c sort by what waits, the oldest, name, class; r the other way round; / filters, Escape ends that;
  arrows and pages scroll; q ends

examples:
  tidegate top
  tidegate top --admin gate-0:8080 --admin gate-1:8080 --token-file /run/secrets/tidegate-admin
  tidegate top --admin https://gate-0:8080 --ca-file ca.pem --once
  tidegate top --json | jq .answers

The token is read from --token-file or from {TOKEN}.
exit codes: 0 done, 1 printed without replicas that are away, which are named, 2 an address, a token or a certificate
is wrong, or all are away
"""


def add_command(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "top",
        help="show what is late, why, and whether it gets better",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--admin",
        action="append",
        metavar="ADDRESS",
        help="HOST:PORT or https://HOST:PORT of a replica's admin address; repeatable (default: 127.0.0.1:8080)",
    )
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="the file that has the token of admin.token")
    parser.add_argument("--ca-file", metavar="FILE", help="who signs the certificates; the system's if not given")
    parser.add_argument("--cert", metavar="FILE", help="a client certificate, if it is asked for one")
    parser.add_argument("--key", metavar="FILE", help="its key, if that is in another file")
    once = parser.add_mutually_exclusive_group()
    once.add_argument("--once", action="store_true", help="print it once, for scripts")
    once.add_argument("--json", action="store_true", help="print it once as JSON")
    parser.set_defaults(command=_top)


def _top(options: argparse.Namespace) -> int:
    from proxy.operations.top_screen import Choice, lines, show

    if options.key is not None and options.cert is None:
        raise SettingsError(["--key is of no use without --cert"])
    tls = context(options.ca_file, options.cert, options.key)
    token = _token(options.token_file)
    links = [Link(address, token, tls) for address in dict.fromkeys(options.admin or ["127.0.0.1:8080"])]
    failures: list[SettingsError] = []
    for link in links:
        try:
            with within(FIRST_SECONDS):
                link.first()
        except SettingsError as error:
            failures.append(error)
    if len(failures) == len(links) or any(not isinstance(one, AwayError) for one in failures):
        raise SettingsError([str(one) for one in failures])
    replicas = [link.replica for link in links]
    if options.json:
        print(json.dumps(_as_json(summed(replicas))))
    elif options.once:
        width = shutil.get_terminal_size().columns
        print(*(line.text.rstrip() for line in lines(summed(replicas), Choice(), width, None)), sep="\n")
    elif not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SettingsError(["top needs a terminal; without one say --once or --json"])
    else:
        for link in links:
            link.begin()
        show(replicas)
        return _DONE
    return _PARTLY if failures else _DONE


def _token(file: Path | None) -> str | None:
    if file is None:
        token = os.environ.get(TOKEN) or None
        if token is not None and not _can_be_shown(token):
            raise SettingsError([f"{TOKEN} holds no token: there is a line end, or another sign that is none of it"])
        return token
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SettingsError([f"--token-file {file} can't be read: {why}"]) from error
    if not _can_be_shown(token):
        raise SettingsError([f"--token-file {file} holds no token"])
    return token


def _can_be_shown(token: str) -> bool:
    """Return whether it can stand in a header."""
    return bool(token) and token.isascii() and token.isprintable()


def _as_json(found: Sum) -> dict[str, Any]:
    return {**found._asdict(), "types": [one._asdict() for one in found.types]}
