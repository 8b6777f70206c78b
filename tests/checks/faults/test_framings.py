"""Messages in lines and behind headers, most of them damaged, through a real server process."""

import json
import random
from pathlib import Path

import anyio
import pytest

from shared.client.connect import connect_stdio
from tests.raw import FILES, ROOT, Json, Raw, WithHeaders, request, with_length
from tests.wire import PATIENCE

ROUNDS = 8_000
MIB = 1 << 20
LIMIT = 2_000
"""Bytes of a message that is taken."""


def ping(id: int | str) -> bytes:
    return json.dumps(request(id, "ping")).encode()


def pong(id: int | str) -> Json:
    return {"jsonrpc": "2.0", "id": id, "result": {}}


async def test_a_client_can_be_told_to_send_headers(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with connect_stdio([*FILES, str(tmp_path)], cwd=ROOT, framing="content-length") as client:
            assert (await client.raw.call_tool("list_directory", {"path": str(tmp_path)}))["content"]


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
@pytest.mark.timeout(600)
def test_no_noise_brings_a_server_down(kind: type[Raw], tmp_path: Path) -> None:
    noise = Noise(ROUNDS)
    # A line ends what was begun, and so does a header, but for a header that was begun as well.
    enough = b"\n" if kind is Raw else with_length(ping("")) * 2
    with kind([*FILES, "--max-message", str(LIMIT), str(tmp_path)]) as server:
        for number in range(ROUNDS):
            server.send(request(number, "ping"))
            assert server.answer(number) == pong(number)
            if number == ROUNDS // 2:
                before = server.memory()
            server.send_bytes(noise.next() + enough)
        server.send(request("last", "ping"))
        assert server.answer("last") == pong("last")
        assert server.memory() - before < 2 * MIB
        server.end()
        assert server.stderr() == ""
