"""The command line, `tidegate --help`: signals, event loop, exit codes. Other commands' words are in their packages.

`__main__` calls it, when it has seen to what can't wait for all that is loaded here.

Exit codes: 0 done, 1 something nobody expected, 2 a mistake the user can mend (one clear message), 128 + n ended at
once by the second signal n. Results go to stdout, logs to stderr.
"""

import argparse
import asyncio
import contextlib
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from proxy import __version__, config
from proxy.config.items import printable, quoted
from proxy.cursor import command as cursor
from proxy.errors import RefusedLoginError, SettingsError, TidegateError
from proxy.json_text import read_json
from proxy.operations import top
from proxy.operations.command import add_commands
from proxy.redrive.command import add_command
from proxy.settings import Settings

if TYPE_CHECKING:
    from proxy.operations.log_lines import LogLines

EXIT_UNEXPECTED = 1
EXIT_MISTAKE = 2
_SIGNALLED = 128
_MOST_TOLD = 1_000_000
"""Bytes that are read of an answer; a thousand stuck event types take a tenth of it."""
_ANSWER_SECONDS = 5.0
"""An answer to `health` may take so long, until it is whole."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_EPILOG = """
examples:
  tidegate check -c tidegate.yaml        say everything that is wrong with the settings, or what they mean
  tidegate run -c tidegate.yaml          move events until SIGTERM; a second signal stops at once
  tidegate top                           what is late, why, is it getting better: live, in the terminal
  tidegate pause -c tidegate.yaml --class P3 --for 30m
                                         send nothing of a class for a time, on every replica of the group
  tidegate skip -c tidegate.yaml --type brand-alert --to 1h --dry-run
                                         what would be dropped: all of a type that is older than an hour
  tidegate rewind -c tidegate.yaml --type order-confirmed --to 2026-11-23T14:02:00Z
                                         send again what was sent since then
  tidegate redrive -c tidegate.yaml --reason unroutable --dry-run
                                         send dead letters again, where they were meant to go
  tidegate report /var/lib/tidegate --out report
                                         tables, pictures and a page from the metric logs (needs tidegate[reports])
  tidegate simulate flash-campaign       the same bridge against a model of the broker, in seconds
  tidegate tune /var/lib/tidegate --law cubic
                                         would the recorded load have been served better (needs tidegate[reports])

exit codes: 0 done, 1 unexpected failure, 2 a mistake in settings or arguments, or a login that is refused;
  128 + n ended by signal n: at once by the second one of `run`
"""


def command(arguments: Sequence[str]) -> int:
    """Run one command; return the exit code. Raises `SystemExit` as argparse does."""
    if arguments[:1] == ["report"]:  # stands alone, with options of its own
        from proxy.reports import command as report

        return report.main(arguments[1:])
    if arguments[:1] == ["simulate"]:
        from proxy.simulation import command as simulation

        return simulation.main(arguments[1:])
    if arguments[:1] == ["tune"]:
        from proxy.tuning import command as tuning

        return tuning.main(arguments[1:])
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
    except SettingsError as error:
        _tell(str(error))
        return EXIT_MISTAKE
    return code


def _tell(words: str) -> None:
    """Print to stderr; the exit code tells the rest to whoever can't be told there."""
    with contextlib.suppress(OSError):
        print(words, file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tidegate",
        description="Moves events from Kafka or Nakadi to RabbitMQ no faster than what stands behind it can take, "
        "important event types first.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tidegate {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="move events until told to stop (SIGTERM, Ctrl-C)")
    run.set_defaults(command=_run)
    check = commands.add_parser("check", help="say what is wrong with the settings, or what they mean")
    check.add_argument("--json", action="store_true", help="print the resolved settings as JSON (secrets left out)")
    check.set_defaults(command=_check)
    health = commands.add_parser("health", help="ask a running Tidegate on this host whether it is alive")
    health.set_defaults(command=_health)
    for command in (run, check, health, *add_commands(commands), *cursor.add_commands(commands), add_command(commands)):
        command.add_argument(
            "-c", "--config", type=_file, action=_Once, required=True, metavar="FILE", help="the settings (YAML)"
        )
    top.add_command(commands)
    commands.add_parser("report", help="analyse metric logs in batch with Spark; see `tidegate report --help`")
    commands.add_parser(
        "simulate", help="try policies in scenarios, under virtual time; see `tidegate simulate --help`"
    )
    commands.add_parser("tune", help="try policies and settings on a recorded load; see `tidegate tune --help`")
    return parser


class _Once(argparse.Action):
    """Takes one value and refuses a second one, instead of forgetting the first."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        value: object,
        _option: str | None = None,
    ) -> None:
        """Keep the value. Raises `ArgumentError` if there is one."""
        first = getattr(namespace, self.dest)
        if first is not None:
            both = f"{quoted(str(first))} and {quoted(str(value))}"
            raise argparse.ArgumentError(self, f"given twice, {both}; name one file, which may `include` others")
        setattr(namespace, self.dest, value)


def _file(given: str) -> Path:
    if not given:  # Path would take it for the folder we are in
        raise argparse.ArgumentTypeError("names no file; give the path of the settings, like tidegate.yaml")
    return Path(given)


def _check(options: argparse.Namespace) -> int:
    from proxy.access.commands import run_command

    def run(command: Sequence[str], seconds: float) -> bytes:
        return asyncio.run(run_command(command, seconds))

    settings = config.load(options.config, os.environ, config.Inspection(time.time(), run))
    print(config.as_json(settings) if options.json else config.describe(settings))
    for warning in config.warnings(settings):
        _tell(f"warning: {warning}")
    return 0


def _health(options: argparse.Namespace) -> int:
    import http.client
    import ssl
    import urllib.error
    import urllib.request

    from proxy.operations.deadline import within

    admin = config.load(options.config, os.environ).admin
    if admin.listen is None:
        _tell("admin.listen is null: there is nothing to ask")
        return EXIT_MISTAKE
    host, _, port = admin.listen.rpartition(":")
    host = "127.0.0.1" if host in {"0.0.0.0", "[::]"} else host  # noqa: S104 - asks, does not listen
    scheme, context = "http", None
    if admin.tls is not None:
        # Its certificate names the host that others know it by, and nothing secret is sent.
        scheme, context = "https", ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    address, code = f"{scheme}://{host}:{port}/health", 0
    try:
        with within(_ANSWER_SECONDS):
            try:
                with urllib.request.urlopen(address, timeout=2, context=context) as answer:  # noqa: S310 - one of the two
                    told = answer.read(_MOST_TOLD)
            except urllib.error.HTTPError as error:
                told, code = error.read(_MOST_TOLD), EXIT_UNEXPECTED
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        why = getattr(reason, "strerror", None) or str(reason)
        _tell(f"no answer from {host}:{port}: {printable(why)}")
        return EXIT_UNEXPECTED
    if not _tells_health(told):
        _tell(f"what answers at {host}:{port} is no Tidegate; see admin.listen")
        return EXIT_UNEXPECTED
    if code:
        _tell(told.decode())
    else:
        print(told.decode())
    return code


def _tells_health(told: bytes) -> bool:
    try:
        found = read_json(told)
    except ValueError:
        return False
    return isinstance(found, dict) and isinstance(found.get("alive"), bool)


def _run(options: argparse.Namespace) -> int:
    from proxy.operations.log_lines import log_to_stderr, traced

    source = config.Source(options.config, os.environ)
    seen = source.fingerprint()  # first: what changes from now on is seen
    settings = _load(options.config)
    lines = log_to_stderr()
    say = structlog.get_logger("tidegate")
    for warning in config.warnings(settings):
        say.warning("settings", note=warning)
    from proxy.event_loop import PreciseLoop
    from proxy.memory import GC_THRESHOLDS, keep_large_blocks_apart

    keep_large_blocks_apart()
    gc.set_threshold(*GC_THRESHOLDS)
    code = 0
    try:
        with asyncio.Runner(loop_factory=PreciseLoop) as runner:
            runner.run(_serve(settings, source, seen, lines))
    except* TidegateError as group:  # what waiting could mend was waited for; what is left only the user can mend
        for name, why in sorted({(_name(error), str(error)) for error in _leaves(group)}):
            say.error(name, why=why)
        code = code or EXIT_MISTAKE
    except* Exception as group:  # noqa: BLE001 - said in one line, as all of the log
        say.error("ended_unexpectedly", trace=traced(group))
        code = EXIT_UNEXPECTED
    finally:
        lines.close()
    return code


def _load(path: Path) -> Settings:
    return config.load(path, os.environ, config.Inspection(time.time()))


async def _serve(settings: Settings, source: config.Source, seen: bytes, lines: "LogLines") -> None:
    from proxy import memory
    from proxy.operations.reload import Files
    from proxy.process import serve

    gc.freeze()  # what is loaded by now stays: a full collection would walk over it, for 16 ms in one step

    loop = asyncio.get_running_loop()

    def register(stop: Callable[[], None], reload: Callable[[], None]) -> None:
        """Have the first signal call `stop`, and the second one end the process; SIGHUP calls `reload`."""

        def on_first(number: int) -> None:
            for again in _SIGNALS:
                loop.add_signal_handler(again, _end_at_once, again)
            structlog.get_logger("tidegate").info(
                "signal", number=number, effect="orderly stop; a second one ends at once"
            )
            stop()

        for number in _SIGNALS:
            loop.add_signal_handler(number, on_first, number)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as `nohup` has it
            loop.add_signal_handler(signal.SIGHUP, reload)

    files = Files(lambda: asyncio.to_thread(_load, source.path), lambda: asyncio.to_thread(source.fingerprint), seen)
    collecting = asyncio.create_task(memory.collect(), name="memory")
    try:
        await serve(settings, files, register, lines.families)
    finally:
        collecting.cancel()


def _end_at_once(number: int) -> None:
    """Leave without another word: whatever is not committed is read again, as after any crash."""
    os._exit(_SIGNALLED + number)


def _name(error: BaseException) -> str:
    return "login_refused" if isinstance(error, RefusedLoginError) else "settings_refused"


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return leaves
