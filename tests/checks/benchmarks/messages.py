"""What the client says: the requests, encoded before the clock runs, and what their answers must contain."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
CLIENT_INFO = {"name": "bench", "version": "1"}
HELLO = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT_INFO}
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
TEXT = "x" * 1_024
FILE = "file.txt"
"""The name of the file that holds it."""
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
}
_ID = '"the id"'


@dataclass(frozen=True)
class Ask:
    """A request, and what shows that its answer is a good one."""

    method: str
    params: dict[str, Any]
    expected: bytes

    def around_id(self) -> tuple[str, str]:
        """The request's text before and after its id."""
        text = json.dumps({"jsonrpc": "2.0", "id": json.loads(_ID), "method": self.method, "params": self.params})
        before, after = text.split(_ID)
        return before, after

    def text(self, id: int) -> bytes:
        """The request with this id."""
        return str(id).join(self.around_id()).encode()

    def lines(self, ids: Sequence[int]) -> list[bytes]:
        """One line for each id."""
        before, after = self.around_id()
        return [f"{before}{one}{after}\n".encode() for one in ids]


PING = Ask("ping", {}, b'"result"')
LIST = Ask("tools/list", {}, b'"read_text_file"')
INITIALIZE = Ask("initialize", HELLO, b'"serverInfo"')


def read(file: Path) -> Ask:
    """The call of `read_text_file`, with an absolute path: servers differ in what a relative one begins at."""
    return Ask("tools/call", {"name": "read_text_file", "arguments": {"path": str(file)}}, TEXT.encode())


def read_stateless(file: Path) -> Ask:
    """The same with the envelope of 2026-07-28."""
    ask = read(file)
    return Ask(ask.method, {"_meta": ENVELOPE, **ask.params}, ask.expected)
