"""Who is asked who sends a request, how often, and what becomes of the answer."""

from typing import Any

import pytest
from anyio import lowlevel

from shared.protocol.http.rules import Denial, Headers, HttpRequest
from shared.protocol.identity import Principal
from shared.transports.http.server import HttpOptions, http_app
from tests.shared.transports.http.http_wire import make_server

PAGE = (b"origin", b"http://localhost:6274")
Header = tuple[bytes, bytes]
PLACES = [("POST", "/mcp"), ("GET", "/x"), ("GET", "/healthz"), ("GET", "/metrics"), ("POST", "/healthz")]


class Asked:
    """An authenticator that takes its time and always answers the same."""

    def __init__(self, answer: Principal | Denial | None) -> None:
        self.answer = answer
        self.headers: list[Headers] = []

    async def authenticate(self, request: HttpRequest) -> Principal | Denial | None:
        await lowlevel.checkpoint()
        self.headers.append(request.headers)
        return self.answer


async def request(asked: Asked, method: str, path: str, *headers: Header) -> tuple[int, dict[bytes, bytes]]:
    """The status and the headers of the answer to a request without a body."""
    sent: list[Any] = []
    scope = {"type": "http", "method": method, "path": path, "client": ("127.0.0.1", 1), "query_string": b""}
    scope["headers"] = [(b"host", b"localhost:8000"), *headers]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async with make_server().open() as running:
        app = http_app(running, HttpOptions(authenticator=asked))
        await app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"])


@pytest.mark.parametrize("headers", [(), (PAGE,)], ids=["program", "page"])
@pytest.mark.parametrize(("method", "path"), PLACES)
async def test_it_is_asked_once(method: str, path: str, headers: tuple[Header, ...]) -> None:
    for answer in (None, Principal("ada"), Denial("no", "Bearer")):
        asked = Asked(answer)
        await request(asked, method, path, *headers)
        assert len(asked.headers) == 1


@pytest.mark.parametrize("headers", [(), (PAGE,)], ids=["program", "page"])
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/mcp"), ("GET", "/x"), ("GET", "/metrics"), ("PUT", "/healthz")]
)
async def test_a_denial_is_a_401_with_its_challenge(method: str, path: str, headers: tuple[Header, ...]) -> None:
    status, sent = await request(Asked(Denial("no", 'DPoP error="invalid_token"')), method, path, *headers)
    assert (status, sent[b"www-authenticate"]) == (401, b'DPoP error="invalid_token"')


async def test_what_is_not_for_this_server_is_refused_without_asking() -> None:
    asked = Asked(None)
    status, _ = await request(asked, "POST", "/mcp", (b"origin", b"http://evil.example"))
    assert (status, asked.headers) == (403, [])
