"""One `tidegate` process and its edges: streams that are closed, full or not read, and signals that come early."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
import yaml

from load.stack.authority import Authority

TOKEN = "0123456789abcdef"
DEADLINE = 30.0
COMMAND = [sys.executable, "-m", "proxy"]


def until(is_so: Callable[[], Any]) -> Any:
    end = time.monotonic() + DEADLINE
    while not (found := is_so()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture
def config(tmp_path: Path, port: int) -> Path:
    """Settings whose log and broker nobody answers for."""
    file = tmp_path / "tidegate.yaml"
    settings = {
        "log": {"hosts": ["127.0.0.1:1"], "group": "g"},
        "broker": {"hosts": ["127.0.0.1:1"]},
        "routes": {"main": {"exchange": "", "policy": "static"}},
        "event_types": {
            "news": {"class": "P1", "route": "main", "routing_key": "q", "dead_letter": {"routing_key": "dead"}}
        },
        "admin": {"listen": f"127.0.0.1:{port}"},
    }
    file.write_text(yaml.safe_dump(settings))
    return file


@contextmanager
def running(
    config: Path, redirection: str = "", **streams: int | IO[bytes] | None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run it behind a shell's redirection."""
    shell = ["sh", "-c", f'ulimit -n 256; exec "$@" {redirection}', "sh"]
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under `nohup` it is ignored, and a child inherits that
    try:
        process = subprocess.Popen([*shell, *COMMAND, "run", "-c", str(config)], **streams)  # type: ignore[call-overload]
    finally:
        signal.signal(signal.SIGHUP, before)
    try:
        yield process
    finally:
        process.kill()
        process.wait(DEADLINE)


def answers(port: int, path: str = "/health") -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, OSError):
        return ""


def lost(port: int) -> float:
    (line,) = [
        line for line in answers(port, "/metrics").splitlines() if line.startswith("tidegate_log_lines_lost_total")
    ]
    return float(line.split()[1])


def health(config: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "health", "-c", str(config)], capture_output=True, text=True, check=False, timeout=DEADLINE
    )


def test_probes_and_the_token_get_an_answer_when_the_admin_address_speaks_tls(
    config: Path, port: int, tmp_path: Path
) -> None:
    certificate, key = Authority(tmp_path).issue("admin", tmp_path / "admin")
    settings = yaml.safe_load(config.read_text())
    settings["admin"] |= {"token": TOKEN, "tls": {"certificate_file": str(certificate), "key_file": str(key)}}
    config.write_text(yaml.safe_dump(settings))
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))

    def told(authorization: str) -> str:
        asked = urllib.request.Request(
            f"https://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {authorization}"}
        )
        with urllib.request.urlopen(asked, timeout=5, context=context) as answer:
            return str(answer.read().decode())

    with running(config, stderr=subprocess.DEVNULL):
        asked = until(lambda: (found := health(config)).returncode == 0 and found)
        assert json.loads(asked.stdout) == {"alive": True}
        with pytest.raises(urllib.error.HTTPError, match="401"):
            told("fedcba9876543210")
        lines = told(TOKEN).splitlines()
    assert 'tidegate_admin_refused_total{why="wrong_token"} 1.0' in lines
    assert "tidegate_stuck 0.0" in lines
    assert any(line.startswith('tidegate_certificate_seconds_left{at="admin",whose="own"} ') for line in lines)


def test_the_reasons_are_printed_and_the_command_fails_when_it_is_not_alive(config: Path, port: int) -> None:
    body = b'{"alive": false, "stuck": {"type orders": "none is sent"}}'
    with socket.create_server(("127.0.0.1", port)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 503 No\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            connection.close()

        answering = threading.Thread(target=answer)
        answering.start()
        asked = health(config)
        answering.join(DEADLINE)
    assert (asked.returncode, asked.stdout, json.loads(asked.stderr)) == (1, "", json.loads(body))


def test_it_lives_and_counts_what_is_lost_when_the_disk_of_its_log_is_full(config: Path, port: int) -> None:
    with running(config, ">/dev/full 2>&1") as process:
        until(lambda: answers(port))
        until(lambda: lost(port) > 0)
        process.terminate()
        assert process.wait(DEADLINE) == 0


def test_it_lives_and_counts_what_is_lost_when_the_reader_of_its_log_has_gone(config: Path, port: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with running(config, stderr=writer) as process:
        os.close(writer)
        until(lambda: answers(port))
        until(lambda: lost(port) > 0)
        process.terminate()
        assert process.wait(DEADLINE) == 0


def test_it_lives_and_ends_in_order_when_nobody_reads_the_pipe_of_its_log(config: Path, port: int) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x")
    except BlockingIOError:
        os.set_blocking(writer, True)
    with running(config, stderr=writer) as process:
        until(lambda: answers(port))
        process.terminate()
        assert process.wait(DEADLINE) == 0
    os.close(reader)
    os.close(writer)


def test_standard_streams_lead_nowhere_and_no_socket_takes_their_place_when_they_are_closed(
    config: Path, port: int
) -> None:
    with running(config, "<&- >&- 2>&-") as process:
        until(lambda: answers(port))
        leads = {str(Path(f"/proc/{process.pid}/fd/{descriptor}").readlink()) for descriptor in range(3)}
        assert leads == {os.devnull}
        process.terminate()
        assert process.wait(DEADLINE) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_with_a_word_when_a_signal_comes_before_the_start(tmp_path: Path, number: int) -> None:
    settings = tmp_path / "tidegate.yaml"
    os.mkfifo(settings)  # nobody writes the settings: the start waits for them
    told = tmp_path / "log"
    with told.open("wb") as log, running(settings, stderr=log) as process:
        caught = 1 << (number - 1)
        until(lambda: handlers(process.pid) & 1 << (signal.SIGTERM - 1) and handlers(process.pid) & caught)
        process.send_signal(number)
        assert process.wait(DEADLINE) == 0
    entry = json.loads(told.read_text())
    assert (entry["event"], entry["number"], entry["effect"]) == ("signal", number, "ends before its start")


def test_it_starts_all_the_same_when_the_settings_are_to_be_looked_at_before_its_start(config: Path, port: int) -> None:
    def answers_when_asked_to_look() -> str:
        process.send_signal(signal.SIGHUP)
        return answers(port)

    with running(config, stderr=subprocess.DEVNULL) as process:
        until(lambda: handlers(process.pid) & 1 << (signal.SIGHUP - 1))
        until(answers_when_asked_to_look)
        process.terminate()
        assert process.wait(DEADLINE) == 0


def handlers(pid: int) -> int:
    """Return the signals that a process has handlers for."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt"))


def test_nothing_heavy_is_loaded_before_the_first_handlers_are_set() -> None:
    script = "import sys, proxy.__main__; print(sorted({'pydantic', 'structlog', 'asyncio'} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=DEADLINE).stdout
    assert told.decode().strip() == "[]"


@pytest.mark.parametrize(
    ("redirection", "why"), [(">/dev/full", "No space left on device"), (">&-", "it is closed")], ids=["full", "closed"]
)
def test_one_sentence_is_said_when_the_answer_of_a_command_can_not_be_written(
    config: Path, redirection: str, why: str
) -> None:
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh", *COMMAND, "check", "-c", str(config)]
    ended = subprocess.run(shell, stderr=subprocess.PIPE, check=False, timeout=DEADLINE)
    assert (ended.returncode, ended.stderr.decode()) == (1, f"tidegate: can't write to standard output: {why}\n")


def test_exit_code_tells_a_mistake_when_the_sentence_can_not_be_written(tmp_path: Path) -> None:
    shell = ["sh", "-c", 'exec "$@" 2>/dev/full', "sh", *COMMAND, "check", "-c", str(tmp_path / "missing.yaml")]
    assert subprocess.run(shell, check=False, timeout=DEADLINE).returncode == 2


def test_a_probe_gets_in_when_others_hold_more_connections_than_there_are_descriptors(config: Path, port: int) -> None:
    with running(config) as process:
        until(lambda: answers(port))
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
        assert until(lambda: answers(port))
        assert until(lambda: len(list(Path(f"/proc/{process.pid}/fd").iterdir())) < 120)
        assert process.poll() is None
        for connection in idle:
            connection.close()
