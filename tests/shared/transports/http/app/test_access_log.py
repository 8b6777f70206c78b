"""The access log: one line per HTTP request, as text and as JSON, without secrets."""

import json
import logging
from collections.abc import Iterator

import pytest

from shared.telemetry.logs import _Json, _Text
from shared.transports.http.app.access_log import session_digest
from tests.shared.transports.http.http_wire import Json, served

ADA = {"Authorization": "Bearer ada-secret"}
TRACE = "0af7651916cd43dd8448eb211c80319c"


class Lines(logging.Handler):
    """Collects log lines in both formats, each formatted at once as by the real handler."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.json: list[Json] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.text.append(_Text().format(record))
        self.json.append(json.loads(_Json().format(record)))


@pytest.fixture
def lines() -> Iterator[Lines]:
    logger, made = logging.getLogger("shared.access"), Lines()
    logger.addHandler(made)
    logger.setLevel(logging.INFO)
    yield made
    logger.removeHandler(made)
    logger.setLevel(logging.NOTSET)


async def test_a_request_is_one_line(lines: Lines) -> None:
    async with served(tokens=("ada-secret",), access_log=True) as site:
        headers = await site.initialize(headers=ADA)
        message = site.message("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
        traced = {**headers, "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
        answer = await site.client.post("/mcp?password=hunter2", json=message, headers={**traced, "Accept": "*/*"})
        assert answer.status_code == 200
        while len(lines.json) < 3:
            await site.client.get("/healthz")
    entry = lines.json[2]
    digest = session_digest(headers["Mcp-Session-Id"])
    assert entry.pop("time")
    assert entry.pop("seconds") > 0
    assert entry.pop("bytes") > 0
    assert entry.pop("message").startswith(f'127.0.0.1 {entry["principal"]} "POST /mcp" 200 ')
    assert entry.pop("principal").startswith("token-")
    assert entry == {
        "level": "info",
        "logger": "shared.access",
        "trace_id": TRACE,
        "span_id": "b7ad6b7169203331",
        "address": "127.0.0.1",
        "method": "POST",
        "path": "/mcp",
        "status": 200,
        "session": digest,
    }
    assert f" shared.access trace_id={TRACE} span_id=b7ad6b7169203331: 127.0.0.1 token-" in lines.text[2]
    for secret in ("ada-secret", "hunter2", headers["Mcp-Session-Id"]):
        assert secret not in str(lines.text) + str(lines.json)


async def test_refused_requests_are_logged_with_escaped_paths(lines: Lines) -> None:
    async with served(tokens=("ada-secret",), access_log=True) as site:
        assert (await site.client.get("/a%0Ab%22c")).status_code == 401
        assert (await site.client.get("/mcp", headers={"Host": "example.com"})).status_code == 403
        while len(lines.json) < 2:
            await site.client.get("/healthz")
    first, second = lines.json[:2]
    assert (first["status"], first["path"], first["principal"]) == (401, "/a\N{REPLACEMENT CHARACTER}b%22c", None)
    assert (second["status"], second["path"]) == (403, "/mcp")
    assert all("\n" not in line for line in lines.text)


async def test_the_access_log_is_off_by_default(lines: Lines) -> None:
    async with served() as site:
        await site.client.get("/healthz")
    assert lines.text == []
