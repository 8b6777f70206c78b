"""A server over HTTP as a process: where it listens, whom it lets in, and how it ends."""

import json
import os
import select
import signal
import socket
from pathlib import Path

import httpx
import pytest

from tests.raw import SLOW, Raw, call, lines, listening, post, request, stateless
from tests.wire import PATIENCE


@pytest.mark.parametrize("arguments", [["--no-auth"], []])
def test_serving_beyond_loopback_needs_no_auth_or_a_token(arguments: list[str]) -> None:
    env = os.environ if arguments else {**os.environ, "MCP_TOKEN": "hunter2"}
    headers = {} if arguments else {"authorization": "Bearer hunter2"}
    command = [*SLOW, "--transport", "http", "--host", "0.0.0.0", "--port", "0", "--allowed-host", "named.example"]
    with Raw([*command, *arguments], env=dict(env)) as server:
        url = listening(server).replace("0.0.0.0", "127.0.0.1")
        answer = post(url, stateless(request(1, "tools/list")), host="named.example", **headers)
        assert answer.status_code == 200
        assert post(url, stateless(request(1, "tools/list")), host="other.example", **headers).status_code == 403
        server.process.terminate()
        assert server.wait() == 0


def test_http_ends_in_order_and_at_once_on_a_second_signal() -> None:
    for signals, code in ((1, 0), (2, -signal.SIGTERM)):
        with Raw([*SLOW, "--transport", "http", "--port", "0"]) as server:
            url = httpx.URL(listening(server))
            with socket.create_connection((url.host, url.port), PATIENCE) as connection:
                body = lines(stateless(call(1, "hold", seconds=0.3 if signals == 1 else 60)))
                head = f"POST {url.path} HTTP/1.1\r\nhost: {url.netloc.decode()}\r\ncontent-length: {len(body)}\r\n"
                head += "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
                head += "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: hold\r\n\r\n"
                connection.sendall(head.encode() + body)
                said = b""
                while b"begun" not in said:
                    said += connection.recv(65_536) or b"begun (but it ended)"
                server.process.terminate()
                if signals == 2:
                    _until_signals_are_deadly(server)
                    server.process.terminate()
                else:
                    while chunk := connection.recv(65_536):
                        said += chunk
                    assert b"held" in said
                assert server.wait() == code


def _until_signals_are_deadly(server: Raw) -> None:
    while True:
        status = Path(f"/proc/{server.pid}/status").read_text()
        mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
        if not int(mask, 16) >> (signal.SIGTERM - 1) & 1:
            return


def test_all_output_in_json_log_format_is_json() -> None:
    more = ["--log-format", "json", "--log-level", "error"]
    with Raw([*SLOW, "--transport", "http", "--port", "0", *more]) as server:
        assert server.process.stderr is not None
        assert select.select([server.process.stderr], [], [], PATIENCE)[0]
        assert "listening on http://127.0.0.1:" in json.loads(server.process.stderr.readline())["message"]
        server.process.terminate()
        assert server.wait() == 0
        assert server.stderr() == ""
