"""One read at a time over a TCP connection: in a session of HTTP, and on a WebSocket to the same server.

The client is the same for both, and never what one waits for: it writes what was encoded before, and reads until the
end of an answer. What the answers say is looked at when the clock has stopped.
"""

import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

from tests.checks.benchmarks import messages, targets
from tests.checks.benchmarks.http_rows import serving
from tests.checks.benchmarks.machine import apart
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import Peer
from tests.checks.benchmarks.pipes import CHUNK, sample
from tests.checks.benchmarks.targets import Measure
from tests.checks.benchmarks.web import ALWAYS, HOST, PATH, PATIENCE, in_session

TURNS = 15
"""How often the two take turns: whatever else the machine does meanwhile must not count for one of them alone."""
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "mcp",
}
_END = b"}}"
"""How each answer ends, in either form."""
_PING = b"\x89\x00"
"""What a server sends on a WebSocket now and then. Who goes on asking need not answer it."""
_BLANK = b"\r\n\r\n"


def socket_rows(peer: Peer, folder: Path) -> Iterator[tuple[Measure, float]]:
    """The rates of `peer`, one connection each."""
    ask = messages.read(folder / messages.FILE)
    with serving(peer, folder) as web:
        head = {"Host": f"{HOST}:{web.port}", **ALWAYS, **in_session(web.open_session())}
        with Line(web.port) as http, Line(web.port) as upgraded, apart(web.pid):
            upgraded.write(_head("GET", {"Host": f"{HOST}:{web.port}", **UPGRADE}), _BLANK)
            upgraded.write(frame(messages.INITIALIZE.text(0)), _END)
            posting = partial(http.one_at_a_time, ask, partial(post, head))
            send = partial(upgraded.one_at_a_time, ask, frame)
            pairs = [(sample(posting), sample(send)) for _ in range(TURNS)]
    yield targets.HTTP_SINGLE, median(posted for posted, _ in pairs)
    yield targets.WEBSOCKET_SINGLE, median(framed for _, framed in pairs)
    yield targets.WEBSOCKET_GAIN, median(framed / posted for posted, framed in pairs)


class Line:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._last_id = 0

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._socket.close()

    def write(self, data: bytes, end: bytes) -> bytes:
        """Sends a request; the answer, which ends with `end`. Raises EOFError where none comes."""
        self._socket.sendall(data)
        answer = b""
        while not answer.removesuffix(_PING).endswith(end):
            chunk = self._socket.recv(CHUNK)
            if not chunk:
                raise EOFError(f"no answer but {answer!r:.500}")
            answer += chunk
        return answer

    def one_at_a_time(self, ask: Ask, written: Callable[[bytes], bytes], count: int) -> float:
        """Requests a second, each sent, as `written`, when the one before is answered."""
        first, self._last_id = self._last_id + 1, self._last_id + count
        requests = [written(ask.text(one)) for one in range(first, first + count)]
        began = time.perf_counter()
        answers = [self.write(request, _END) for request in requests]
        took = time.perf_counter() - began
        bad = next((answer for answer in answers if ask.expected not in answer), None)
        if bad is not None:
            raise ValueError(f"a request was answered by {bad!r:.500}")
        return count / took


def frame(text: bytes) -> bytes:
    """A text frame of less than 64 KiB; its mask is 0, which changes nothing (RFC 6455, section 5.2)."""
    size = len(text)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2)
    return b"\x81" + length + bytes(4) + text


def post(headers: dict[str, str], body: bytes) -> bytes:
    """A POST of `body`, as it is sent."""
    return _head("POST", {**headers, "Content-Length": str(len(body))}) + body


def _head(method: str, headers: dict[str, str]) -> bytes:
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"{method} {PATH} HTTP/1.1", *lines, "", ""]).encode()
