"""The rules of HTTP by table."""

import pytest

from shared.errors import InternalError, RpcError
from shared.protocol.http.rules import (
    EVENT_STREAM,
    JSON,
    Headers,
    accepts,
    accepts_gzip,
    check_accept,
    check_content,
    check_handshake_body,
    check_single,
    check_version_header,
    is_session_id,
    is_stateless,
    read_event_id,
    read_headers,
    refuse,
    request_ids,
    stateless_status,
)
from shared.protocol.versions import V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28, Version
from shared.protocol.wire.codec import decode
from shared.protocol.wire.jsonrpc import Batch, Malformed, Message, Notification, Request, Response, failure

ENVELOPE = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


def of(**values: str) -> Headers:
    return Headers({name.replace("_", "-"): value for name, value in values.items()})


# Headers


def test_blanks_around_a_value_are_not_part_of_it() -> None:
    headers = read_headers([(b"Mcp-Method", b" \ttools/list\t "), (b"X", b"a  b")])
    assert (headers.get("mcp-method"), headers.get("x")) == ("tools/list", "a  b")


def test_lists_are_joined_and_single_values_are_not() -> None:
    headers = read_headers(
        [(b"accept", b"a"), (b"Accept", b"b"), (b"mcp-name", b"one"), (b"Mcp-Name", b"two"), (b"MCP-Param-X", b"1")]
    )
    assert headers.get("accept") == "a, b"
    assert headers.get("mcp-name") == "one"
    assert headers.get("absent") is None
    assert headers.repeated == {"mcp-name"}


@pytest.mark.parametrize(
    ("name", "always"),
    [
        ("Host", True),
        ("Origin", True),
        ("Authorization", True),
        ("X-API-Key", True),
        ("Content-Type", True),
        ("Mcp-Session-Id", False),
        ("MCP-Protocol-Version", False),
        ("Mcp-Method", False),
        ("Mcp-Param-Region", False),
    ],
)
def test_what_may_come_once(name: str, always: bool) -> None:
    headers = read_headers([(name.encode(), b"a"), (name.lower().encode(), b"b")])
    assert (check_single(headers, all_of_them=False) is not None) is always
    refusal = check_single(headers, all_of_them=True)
    assert refusal is not None
    assert refusal.status == 400
    assert name.lower() not in refusal.failure.message


def test_refusals_carry_headers() -> None:
    assert refuse(405, "no", Allow="POST", Retry_After="1").headers == (("allow", "POST"), ("retry-after", "1"))


# Media types


@pytest.mark.parametrize(
    ("accept", "media_type", "taken"),
    [
        (None, JSON, False),
        ("", JSON, False),
        (JSON, JSON, True),
        ("Application/JSON", JSON, True),
        (JSON, EVENT_STREAM, False),
        ("application/json, text/event-stream", EVENT_STREAM, True),
        ("application/json ; charset=utf-8,text/event-stream", JSON, True),
        ("*/*", JSON, True),
        ("application/*", JSON, True),
        ("application/*", EVENT_STREAM, False),
        ("text/*", EVENT_STREAM, True),
        ("*/*;q=0", JSON, False),
        ("application/json;q=0, */*", JSON, False),
        ("application/json;q=0.000, application/*", JSON, False),
        ("application/*;q=0, application/json", JSON, True),
        ("*/*, application/*;q=0", JSON, False),
        ("application/json; q = 0.5", JSON, True),
        ("application/json;q=0.001", JSON, True),
        ("application/json;q=high", JSON, False),
        ("application/json;q=2", JSON, False),
        ("application/jsonp", JSON, False),
        ("text/html, image/*", JSON, False),
    ],
)
def test_accept(accept: str | None, media_type: str, taken: bool) -> None:
    assert accepts(accept, media_type) is taken


@pytest.mark.parametrize(
    ("accept_encoding", "taken"),
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("GZip, deflate", True),
        ("deflate, br, zstd", False),
        ("identity", False),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip;q=0, *", False),
        ("*;q=0, gzip;q=0.1", True),
        ("br;q=1.0, gzip;q=0.001", True),
        ("gzip; q = 0.000", False),
        ("gzip;q=much", False),
        ("x-gzip", True),
        ("gzipped", False),
    ],
)
def test_accept_encoding(accept_encoding: str | None, taken: bool) -> None:
    assert accepts_gzip(accept_encoding) is taken


def test_accept_must_list_all() -> None:
    assert check_accept(of(accept="*/*"), JSON, EVENT_STREAM) is None
    refusal = check_accept(of(accept=JSON), JSON, EVENT_STREAM)
    assert refusal is not None
    assert refusal.status == 406


@pytest.mark.parametrize(
    ("headers", "taken"),
    [
        (of(content_type="application/json"), True),
        (of(content_type="Application/Json; charset=utf-8"), True),
        (of(content_type="application/json", content_encoding="identity"), True),
        (of(content_type="application/json", content_encoding="gzip"), True),
        (of(content_type="application/json", content_encoding="X-Gzip"), True),
        (of(content_type="application/json", content_encoding="br"), False),
        (of(content_type="application/json", content_encoding="gzip, gzip"), False),
        (of(content_type="text/plain", content_encoding="gzip"), False),
        (of(content_type="application/json-rpc"), False),
        (of(content_type="text/plain"), False),
        (of(content_type=""), False),
        (of(), False),
    ],
)
def test_content(headers: Headers, taken: bool) -> None:
    refusal = check_content(headers)
    assert (refusal is None) is taken
    assert refusal is None or refusal.status == 415


def test_a_refused_coding_is_told_which_one_is_taken() -> None:
    refusal = check_content(of(content_type="application/json", content_encoding="deflate"))
    assert refusal is not None
    assert refusal.headers == (("accept-encoding", "gzip"),)


# Eras


@pytest.mark.parametrize(
    ("version", "message", "stateless"),
    [
        (None, None, False),
        (None, Request(1, "tools/list"), False),
        (None, Request(1, "tools/list", ENVELOPE), True),
        (None, Request(1, "tools/list", {"_meta": {"progressToken": 1}}), False),
        (None, Notification("notifications/x", ENVELOPE), True),
        ("2026-07-28", None, True),
        ("2026-07-28", Request(1, "initialize"), True),
        ("2026-07-28", Response(1, {}), True),
        ("2025-11-25", None, False),
        ("2025-11-25", Request(1, "tools/list", ENVELOPE), True),
        ("2099-01-01", None, False),
        ("2099-01-01", Request(1, "tools/list", ENVELOPE), True),
        ("2099-01-01", Request(1, "tools/list"), False),
    ],
)
def test_the_era_of_a_request(version: str | None, message: Message | None, stateless: bool) -> None:
    headers = of() if version is None else of(mcp_protocol_version=version)
    assert is_stateless(headers, message) is stateless


@pytest.mark.parametrize(
    ("sent", "version", "fine"),
    [
        (None, V2025_11_25, True),
        ("2025-11-25", V2025_11_25, True),
        ("2025-11-25", None, True),
        ("2025-06-18", V2025_11_25, False),
        ("2026-07-28", None, False),
        ("2099-01-01", None, False),
        ("2025-11-25x", V2025_11_25, False),
    ],
)
def test_the_version_header_of_a_session(sent: str | None, version: Version | None, fine: bool) -> None:
    headers = of() if sent is None else of(mcp_protocol_version=sent)
    refusal = check_version_header(headers, version)
    assert (refusal is None) is fine
    assert refusal is None or refusal.status == 400


def test_an_unsupported_version_is_told_the_versions_and_not_repeated() -> None:
    refusal = check_version_header(of(mcp_protocol_version="2099-01-01"), None)
    assert refusal is not None
    assert refusal.failure.data == {"supported": ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]}
    assert "2099" not in refusal.failure.message


@pytest.mark.parametrize(
    ("text", "fine"), [("a", True), ("!~", True), ("", False), ("a b", False), ("é", False), ("a" * 257, False)]
)
def test_session_ids(text: str, fine: bool) -> None:
    assert is_session_id(text) is fine


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("0a_1", ("0a", 1)),
        ("0123456789abcdef_0", ("0123456789abcdef", 0)),
        ("_1", None),
        ("0a_", None),
        ("0a", None),
        ("0a_-1", None),
        ("0a_1\n", None),
        ("0a_١", None),
        ("0A_1", None),
        ("0a_1_2", None),
        ("0a_" + "9" * 16, None),
        ("a" * 65 + "_1", None),
    ],
)
def test_event_ids(text: str, named: tuple[str, int] | None) -> None:
    assert read_event_id(text) == named


# Bodies


ONE = Request(1, "ping")
BAD = decode(b"[1, 2]")


@pytest.mark.parametrize(
    ("message", "version", "code"),
    [
        (ONE, V2025_11_25, None),
        (Response(1, {}), V2025_11_25, None),
        (decode(b"{"), V2025_11_25, -32700),
        (decode(b"{}"), V2025_11_25, -32600),
        (Batch((ONE,)), None, -32600),
        (Batch((ONE,)), V2025_06_18, -32600),
        (Batch((ONE,)), V2025_03_26, None),
        (Batch((Notification("x"),)), V2025_03_26, None),
        (Batch((Notification("x"),) * 1_001), V2025_03_26, -32600),
        (BAD, V2025_03_26, -32600),
    ],
)
def test_bodies_for_a_session(message: Message, version: Version | None, code: int | None) -> None:
    refusal = check_handshake_body(message, version)
    assert (refusal.failure.code if refusal is not None else None) == code
    assert refusal is None or refusal.status == 400


def test_a_batch_of_good_and_bad_is_the_sessions() -> None:
    batch = decode(b'[1, {"jsonrpc": "2.0", "id": 1, "method": "ping"}]')
    assert check_handshake_body(batch, V2025_03_26) is None
    assert request_ids(batch) == (1,)


def test_request_ids() -> None:
    assert request_ids(ONE) == (1,)
    assert request_ids(Notification("x")) == ()
    assert request_ids(Batch((ONE, Notification("x"), Request("1", "ping")))) == (1, "1")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (-32700, 400),
        (-32600, 400),
        (-32601, 404),
        (-32602, 400),
        (-32603, 200),
        (-32020, 400),
        (-32021, 400),
        (-32022, 400),
        (1, 200),
    ],
)
def test_the_status_of_an_answer(code: int, status: int) -> None:
    assert stateless_status(failure(1, RpcError("x", code=code))) == status
    assert stateless_status(RpcError("x", code=code)) == status


def test_a_result_is_200() -> None:
    assert stateless_status(Response(1, {})) == 200
    assert stateless_status(InternalError("x")) == 200
    assert V2026_07_28.stateless
    assert isinstance(decode(b"{"), Malformed)
