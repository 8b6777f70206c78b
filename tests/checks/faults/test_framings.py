"""Messages in lines and behind headers, and what is neither, through a real server process."""

import json
import random
from pathlib import Path

import anyio
import pytest

from shared.client.connect import connect_stdio
from tests.checks.faults.raw import FILES, ROOT, Json, Raw, WithHeaders, lines, request, with_length
from tests.wire import PATIENCE

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
MIB = 1 << 20
LIMIT = 2_000
"""Bytes of a message that is taken."""


def ping(id: int | str) -> bytes:
    return json.dumps(request(id, "ping")).encode()


def pong(id: int | str) -> Json:
    return {"jsonrpc": "2.0", "id": id, "result": {}}


def test_a_client_with_headers_is_answered_with_headers(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("é")
    with WithHeaders([*FILES, str(tmp_path)]).open() as server:
        read = {"name": "read_text_file", "arguments": {"path": str(tmp_path / "a.txt")}}
        server.send(request(1, "tools/list"), request(2, "tools/call", read), request("last", "ping"))
        answers = {
            answer["id"]: answer["result"] for answer in (server.receive(), server.receive(), server.receive())
        }
        assert "read_text_file" in [tool["name"] for tool in answers[1]["tools"]]
        assert "é" in answers[2]["content"][0]["text"]
        server.close_stdin()
        assert server.rest() == []
        assert server.wait() == 0
        assert server.stderr() == ""


def test_where_dialects_are_off_a_header_is_a_line(tmp_path: Path) -> None:
    with Raw([*FILES, "--dialects", "off", str(tmp_path)]) as server:
        server.send_bytes(with_length(ping(1)) + b"\n")
        assert server.receive()["error"]["code"] == PARSE_ERROR
        assert server.receive() == pong(1)


async def test_a_client_can_be_told_to_send_headers(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with connect_stdio([*FILES, str(tmp_path)], cwd=ROOT, framing="content-length") as client:
            assert (await client.plain.call_tool("list_directory", {"path": str(tmp_path)}))["content"]


BAD = {
    "no length": b"Content-Type: application/json\r\n\r\n" + ping(0),
    "no number": b"Content-Length: many\r\n\r\n" + ping(0),
    "negative": b"Content-Length: -1\r\n\r\n" + ping(0),
    "huge": b"Content-Length: 9999999999999999999999\r\n\r\n" + ping(0),
    "two": b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + ping(0),
    "the same twice": b"Content-Length: %d\r\n" % len(ping(0)) * 2 + b"\r\n" + ping(0),
    "too small": b"Content-Length: 20\r\n\r\n" + ping(0),
    "too large": b"Content-Length: 90\r\n\r\n" + ping(0),
    "far too large": b"Content-Length: 999999999\r\n\r\n" + ping(0),
    "a header of 1 MB": b"Content-Length: 5\r\nX: " + b"x" * MIB + b"\r\n\r\n" + ping(0),
    "a header that never ends": b"X: " + b"x" * MIB,
    "a line": lines(request(0, "ping")),
    "no header": b"hello\r\n\r\n",
    "no JSON": with_length(b"hello"),
    "nothing": with_length(b""),
    "too long": with_length(b'{"a": "%b"}' % (b"x" * 2 * MIB)),
}
TOO_LONG = {"too long", "far too large"}


def test_what_is_framed_badly_gets_one_error_and_reading_goes_on(tmp_path: Path) -> None:
    found = {}
    with WithHeaders([*FILES, "--max-message", str(MIB), str(tmp_path)]).open() as server:
        for name, bad in BAD.items():
            # The header that never ends does so with the next one.
            server.send_bytes(bad + with_length(ping("next")) + with_length(ping("last")))
            answers = [server.receive()]
            while answers[-1] != pong("last"):
                answers.append(server.receive())
            found[name] = [answer["error"]["code"] for answer in answers if "error" in answer]
            assert pong("next") in answers or name == "a header that never ends"
        server.close_stdin()
        assert server.rest() == []
        assert server.wait() == 0
        assert server.stderr() == ""
    assert found == {name: [INVALID_REQUEST if name in TOO_LONG else PARSE_ERROR] for name in BAD}


class Noise:
    """Messages in both framings, most of them damaged."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def next(self) -> bytes:
        """Some bytes. No request among them is to be answered but for pings."""
        return b"".join(self._damaged(self._piece()) for _ in range(self._chance.randint(1, 4)))

    def _piece(self) -> bytes:
        body = ping("x" * self._chance.choice([1, 20, 500, LIMIT, 3 * LIMIT]))
        length = len(body) + self._chance.choice([0, 0, 1, -1, 7, -7, 1_000, 10**12])
        name = self._chance.choice([b"Content-Length", b"content-length", b"Content-Type", b"X"])
        end = self._chance.choice([b"\r\n", b"\n", b"\r", b""])
        header = name + b": %d" % length + end
        return header * self._chance.choice([0, 1, 1, 1, 1, 1, 1, 1, 2, 500]) + end + body + end

    def _damaged(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self._chance.choice([0, 0, 1, 5])):
            at = self._chance.randrange(len(changed) + 1)
            changed[at : at + self._chance.randint(0, 9)] = self._chance.randbytes(self._chance.randint(0, 9))
        return bytes(changed[: self._chance.choice([None, None, self._chance.randrange(len(changed) + 1)])])


@pytest.mark.parametrize("kind", [Raw, WithHeaders], ids=["lines", "headers"])
@pytest.mark.parametrize("rounds", [500, pytest.param(20_000, marks=[pytest.mark.timeout(600)])])
def test_no_noise_brings_a_server_down(kind: type[Raw], rounds: int, tmp_path: Path) -> None:
    noise = Noise(rounds)
    # A line ends what was begun, and so does a header, but for a header that was begun as well.
    enough = b"\n" if kind is Raw else with_length(ping("")) * 2
    with kind([*FILES, "--max-message", str(LIMIT), str(tmp_path)]) as server:
        for number in range(rounds):
            server.send(request(number, "ping"))
            assert server.answer(number) == pong(number)
            if number == rounds // 5:
                before = server.memory()
            server.send_bytes(noise.next() + enough)
        server.send(request("last", "ping"))
        assert server.answer("last") == pong("last")
        assert server.memory() - before < 2 * MIB
        server.close_stdin()
        assert server.rest() == []
        assert server.wait() == 0
        assert server.stderr() == ""
