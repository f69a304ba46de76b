"""What is wrong with the arguments is said before anything is read."""

import http.server
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from proxy.__main__ import main
from tests.support.settings_files import HEAD, ONE_TYPE


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("run", "-c", "one.yaml", "--config", "two.yaml"),
            'given twice, "one.yaml" and "two.yaml"; name one file, which may `include` others',
        ),
        (("check", "-c", ""), "names no file; give the path of the settings, like tidegate.yaml"),
    ],
)
def test_a_settings_file_is_refused_when_it_is_named_twice_or_not_at_all(
    arguments: Sequence[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.endswith(f"argument -c/--config: {told}\n")


@pytest.fixture
def slow_port() -> Iterator[int]:
    """Somebody who takes his time: a byte of an answer every tenth of a second, without end."""

    def drip() -> None:
        with suppress(OSError):
            peer, _ = server.accept()
            with peer:
                peer.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while not is_over.wait(0.1):
                    peer.sendall(b"x")

    is_over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        dripping = threading.Thread(target=drip)
        dripping.start()
        yield server.getsockname()[1]
        is_over.set()
        dripping.join()


def test_health_gives_up_when_an_answer_never_ends(
    slow_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("proxy.command_line._ANSWER_SECONDS", 0.5)
    file = tmp_path / "tidegate.yaml"
    file.write_text(f'{HEAD}{ONE_TYPE}admin: {{listen: "127.0.0.1:{slow_port}"}}\n')
    assert main(["health", "-c", str(file)]) == 1
    assert capsys.readouterr().err == f"no answer from 127.0.0.1:{slow_port}: no whole answer within 0.5 s\n"


def test_top_gives_up_when_an_answer_never_ends(
    slow_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("proxy.operations.top.FIRST_SECONDS", 0.5)
    assert main(["top", "--once", "--admin", f"127.0.0.1:{slow_port}"]) == 2
    assert capsys.readouterr().err == f"127.0.0.1:{slow_port}: no whole answer within 0.5 s\n"


@pytest.mark.parametrize("body", [b"<html>hello</html>", b'{"status": "ok"}', b"[]", b"", b'{"alive": "yes"}', b"\xff"])
@pytest.mark.parametrize("status", [200, 404])
def test_nobody_is_called_healthy_when_what_answers_is_no_tidegate(
    tmp_path: Path, body: bytes, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    class Foreign(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Foreign) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        file = tmp_path / "tidegate.yaml"
        file.write_text(f'{HEAD}{ONE_TYPE}admin: {{listen: "127.0.0.1:{server.server_port}"}}\n')
        assert main(["health", "-c", str(file)]) == 1
        told = capsys.readouterr()
    assert (told.out, told.err) == (
        "",
        f"what answers at 127.0.0.1:{server.server_port} is no Tidegate; see admin.listen\n",
    )
