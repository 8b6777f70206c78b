"""Answers of sites made by chance: good ones, odd ones, and then broken; the same for the same seed."""

from random import Random

from tests.checks.fetch.hostile_html import LABELS, TEXTS
from tests.checks.fetch.hostile_urls import Urls
from tests.servers.fetch.packing import NAMES, PACK

FIRST_LINES = (
    *["HTTP/1.1 200 OK"] * 8, "HTTP/1.0 200 OK", "HTTP/1.1 200", "HTTP/1.1 200 \x1b[31m", "HTTP/1.1 302 X",
    "HTTP/1.1 301 X", "HTTP/1.1 308 X", "HTTP/1.1 404 X", "HTTP/1.1 500 X", "HTTP/1.1 503 X", "HTTP/1.1 204 X",
    "HTTP/1.1 206 X", "HTTP/1.1 101 X", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK",
    "HTTP/1.1 103 X\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK", "HTTP/2 200", "HTTP/1.1 999 X", "HTTP/1.1 20",
    "HTTP/9.9 200 OK", "ICY 200 OK", "SSH-2.0-OpenSSH", "", "\x16\x03\x01",
)  # fmt: skip
TYPES = (
    "text/html", "text/plain", "application/json", "application/rss+xml", "application/octet-stream", "image/png",
    "text/follow-these-instructions-now", "text/" + "x" * 500, "text/html\x1b[31m", "TEXT/HTML;charset", "a/b/c", "",
    "text/markdown",
)  # fmt: skip
HEADERS = (
    "Set-Cookie: a=b; Domain=.example", "Link: <http://169.254.169.254/>; rel=preload",
    "Link: </x>; rel=alternate; type=text/markdown", 'Link: <//10.0.0.1/>; rel="alternate"; type="text/markdown"',
    "Refresh: 0;url=http://10.0.0.1/", "Vary: *", "Vary: accept, x-secret",
    "Cache-Control: max-age=99999999999999999999", "Cache-Control: =;,\"'", "Age: -1", "ETag: \u00ff",
    "Retry-After: 99999999999999999999", "Retry-After: Thu, 99 Foo 0000", "Date: 0", "Expires: \u0663",
    "Content-Length: 5", "Content-Length: -1", "Content-Length: 1e3", "Content-Length: 99999999999999999999",
    "X: \r\n y", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 3", "Content-Encoding: gzip, gzip, gzip",
    "Content-Encoding: compress", "Content-Encoding: identity", "Upgrade: h2c",
    "Content-Disposition: attachment; filename=../../x", 'Alt-Svc: h3="10.0.0.1:443"', "Connection: keep-alive", "X",
    ": y", "X : y", "X\x00: y", "X: \x00", "X: " + "y" * 70_000, "Proxy-Authenticate: Basic",
    "WWW-Authenticate: Basic",
)  # fmt: skip
SIZES = ("{:x}", "{:x};ext=1", "{:X}", "0{:x}", "-{:x}", "{:x} ", "0x{:x}", "ffffffffffffffff", "")


class Answers:
    """Answers by chance. A redirect leads to one of `urls`."""

    def __init__(self, seed: int, urls: Urls) -> None:
        self.random = Random(seed)
        self.urls = urls

    def answer(self) -> bytes:
        """All bytes of one answer."""
        pick, chance = self.random.choice, self.random.random
        body = (pick(TEXTS) * pick((0, 1, 20, 300))).encode("utf-8", "replace")
        lines = [pick(FIRST_LINES), f"Content-Type: {pick(TYPES)}; charset={pick(LABELS)}"]
        if chance() < 0.3:
            name = pick(list(PACK))
            body = PACK[name](body)
            lines.append(f"Content-Encoding: {pick((NAMES[name], NAMES[name], 'br'))}")
        if chance() < 0.3:
            body = self._chunked(body)
            lines.append("Transfer-Encoding: chunked")
        if chance() < 0.5:
            lines.append(f"{pick(('Location', 'location', 'Location '))}: {self.urls.url()}")
        lines += self.random.choices(HEADERS, k=pick((0, 0, 1, 2, 5)))
        self.random.shuffle(lines[1:])
        whole = pick(("\r\n", "\r\n", "\r\n", "\n")).join([*lines, "", ""]).encode("utf-8", "surrogatepass") + body
        return self._mutated(whole) if chance() < 0.3 else whole

    def _chunked(self, body: bytes) -> bytes:
        parts, size = [], self.random.choice((1, 7, 1_000))
        for at in range(0, min(len(body), size * 50), size):
            part = body[at : at + size]
            head = SIZES[0] if self.random.random() < 0.95 else self.random.choice(SIZES)
            parts.append(head.format(len(part)).encode() + b"\r\n" + part + b"\r\n")
        return b"".join([*parts, self.random.choice((b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"0\r\n", b""))])

    def _mutated(self, whole: bytes) -> bytes:
        at = self.random.randrange(len(whole) + 1)
        new = self.random.choice((b"", b"\0", b"\r\n", b"\xff\xfe", self.random.randbytes(8), whole[:at][-50:]))
        return whole[:at] + new + whole[at + self.random.choice((0, 1, 20, 10_000)) :]
