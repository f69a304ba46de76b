"""`run`: the command's own exit code, and signals that reach it once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from load.stack.__main__ import main, run_command
from load.stack.errors import StackError

PROJECT = Path(__file__).resolve().parents[3]

# A script that runs its argument as `run` would, and tells its exit code.
RUNNER = (
    "import os, sys; from load.stack.__main__ import run_command;"
    "print(run_command(sys.argv[1:], dict(os.environ)), flush=True)"
)
COUNTER = (
    "import signal, time\n"
    "got = []\n"
    "for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(s, lambda n, _: got.append(n))\n"
    "print('ready', flush=True)\n"
    "patience = time.monotonic() + 20\n"
    "while not got and time.monotonic() < patience: time.sleep(0.01)\n"
    "time.sleep(0.2)\n"
    "raise SystemExit(100 + len(got))\n"
)


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)],
)
def test_the_exit_code_is_the_commands_when_it_ends(command: str, code: int) -> None:
    assert run_command(["sh", "-c", command], dict(os.environ)) == code


def test_the_command_sees_what_is_set_for_it_when_it_runs(tmp_path: Path) -> None:
    run_command(["sh", "-c", f"echo $TIDEGATE_KAFKA > {tmp_path}/seen"], {**os.environ, "TIDEGATE_KAFKA": "here:1"})

    assert (tmp_path / "seen").read_text() == "here:1\n"


def test_the_command_is_named_when_it_can_not_be_run() -> None:
    with pytest.raises(StackError, match="no-such-command can't be run: No such file"):
        run_command(["no-such-command"], dict(os.environ))


def test_signals_are_open_again_when_the_command_has_ended() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    run_command(["true"], dict(os.environ))

    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_command_once_when_sent_to_the_script_alone(signum: signal.Signals) -> None:
    command = [sys.executable, "-c", RUNNER, sys.executable, "-c", COUNTER]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        assert script.stdout.readline() == "ready\n"
        script.send_signal(signum)
        assert script.stdout.read() == "101\n"


def test_every_example_is_understood_when_help_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])

    text = capsys.readouterr().out
    assert all(
        word in text for word in ("up", "down", "status", "run -- ", "rabbitmq-4", "TIDEGATE_STACK", "exit codes")
    )
