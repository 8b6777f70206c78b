"""Tables for the rules of the HTTP transport."""

from shared.errors import InternalError, RpcError
from shared.protocol.http.rules import (
    EVENT_STREAM,
    JSON,
    Headers,
    accepted_types,
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
from shared.protocol.versions import V2025_03_26, V2025_06_18, V2025_11_25, Version
from shared.protocol.wire.codec import decode
from shared.protocol.wire.jsonrpc import Batch, Message, Notification, Request, Response, failure

ENVELOPE = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


def make_headers(**values: str) -> Headers:
    return Headers({name.replace("_", "-"): value for name, value in values.items()})


# Headers


def test_whitespace_around_header_values_is_stripped() -> None:
    headers = read_headers([(b"Mcp-Method", b" \ttools/list\t "), (b"X", b"a  b")])
    assert (headers.get("mcp-method"), headers.get("x")) == ("tools/list", "a  b")


def test_only_repeated_list_headers_are_joined() -> None:
    headers = read_headers(
        [(b"accept", b"a"), (b"Accept", b"b"), (b"mcp-name", b"one"), (b"Mcp-Name", b"two"), (b"MCP-Param-X", b"1")]
    )
    assert headers.get("accept") == "a, b"
    assert headers.get("mcp-name") == "one"
    assert headers.get("absent") is None
    assert headers.repeated == {"mcp-name"}


def test_repeated_single_value_headers_are_refused() -> None:
    always = ["Host", "Origin", "Authorization", "X-API-Key", "Content-Type"]
    for name in (*always, "Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Param-Region"):
        headers = read_headers([(name.encode(), b"a"), (name.lower().encode(), b"b")])
        assert (check_single(headers, all_of_them=False) is not None) is (name in always), name
        refusal = check_single(headers, all_of_them=True)
        assert refusal is not None
        assert refusal.status == 400
        assert name.lower() not in refusal.failure.message


def test_refusals_have_response_headers() -> None:
    assert refuse(405, "no", Allow="POST", Retry_After="1").headers == (("allow", "POST"), ("retry-after", "1"))


# Media types


TAKEN: dict[str, list[str | None]] = {
    JSON: [
        *(JSON, "Application/JSON", "application/json ; charset=utf-8,text/event-stream", "*/*", "application/*"),
        *("application/*;q=0, application/json", "application/json; q = 0.5", "application/json;q=0.001"),
    ],
    EVENT_STREAM: ["application/json, text/event-stream", "text/*"],
}
NOT_TAKEN: dict[str, list[str | None]] = {
    JSON: [
        *(None, "", "*/*;q=0", "application/json;q=0, */*", "application/json;q=0.000, application/*"),
        *("*/*, application/*;q=0", "application/json;q=high", "application/json;q=2", "application/jsonp"),
        "text/html, image/*",
    ],
    EVENT_STREAM: [JSON, "application/*"],
}


def test_accept_matches_media_types() -> None:
    assert [one for kind, all_ in TAKEN.items() for one in all_ if not accepts(one, kind)] == []
    assert [one for kind, all_ in NOT_TAKEN.items() for one in all_ if accepts(one, kind)] == []


def test_accept_encoding_matches_gzip() -> None:
    taken = ["gzip", "GZip, deflate", "*", "*;q=0, gzip;q=0.1", "br;q=1.0, gzip;q=0.001", "x-gzip"]
    others = [
        *(None, "", "deflate, br, zstd", "identity", "gzip;q=0", "gzip;q=0, *", "gzip; q = 0.000", "gzip;q=much"),
        "gzipped",
    ]
    assert [one for one in [*taken, *others] if accepts_gzip(one)] == taken


def test_the_media_types_that_a_client_accepts_decide_about_the_status_406() -> None:
    both = (JSON, EVENT_STREAM)
    headers = {"*/*": both, "": both, JSON: (JSON,), EVENT_STREAM: (EVENT_STREAM,), "text/html": ()}
    assert {accept: accepted_types(make_headers(accept=accept)) for accept in headers} == headers
    assert accepted_types(make_headers()) == both
    refusal = check_accept(make_headers(accept=JSON))
    assert refusal is not None
    assert refusal.status == 406


def test_content_type_and_encoding_are_checked() -> None:
    taken = [
        *(make_headers(content_type=kind) for kind in ("application/json", "Application/Json; charset=utf-8")),
        *(make_headers(content_type=JSON, content_encoding=coding) for coding in ("identity", "gzip", "X-Gzip")),
    ]
    refused = [
        *(make_headers(content_type=JSON, content_encoding=coding) for coding in ("br", "gzip, gzip")),
        make_headers(content_type="text/plain", content_encoding="gzip"),
        *(make_headers(content_type=kind) for kind in ("application/json-rpc", "text/plain", "")),
        make_headers(),
    ]
    assert [check_content(headers) for headers in taken] == [None] * len(taken)
    checked = [(headers, check_content(headers)) for headers in refused]
    assert [headers for headers, refusal in checked if refusal is None or refusal.status != 415] == []


def test_refusals_of_content_codings_name_gzip() -> None:
    refusal = check_content(make_headers(content_type="application/json", content_encoding="deflate"))
    assert refusal is not None
    assert refusal.headers == (("accept-encoding", "gzip"),)


# Eras


ERAS: list[tuple[str | None, Message | None, bool]] = [
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
]
"""Version header, message, and whether the request is stateless."""


def version_headers(version: str | None) -> Headers:
    return make_headers() if version is None else make_headers(mcp_protocol_version=version)


def test_requests_are_stateless_by_version_header_and_envelope() -> None:
    assert [row for row in ERAS if is_stateless(version_headers(row[0]), row[1]) is not row[2]] == []


def test_version_headers_must_equal_the_version_of_the_session() -> None:
    fine = [(None, V2025_11_25), ("2025-11-25", V2025_11_25), ("2025-11-25", None)]
    assert [check_version_header(version_headers(sent), version) for sent, version in fine] == [None] * 3
    for sent, version in (
        *(("2025-06-18", V2025_11_25), ("2025-11-25x", V2025_11_25)),
        *(("2026-07-28", None), ("2099-01-01", None)),
    ):
        refusal = check_version_header(version_headers(sent), version)
        assert refusal is not None
        assert refusal.status == 400


def test_refusals_of_unsupported_versions_list_the_supported_versions() -> None:
    refusal = check_version_header(make_headers(mcp_protocol_version="2099-01-01"), None)
    assert refusal is not None
    assert refusal.failure.data == {"supported": ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]}
    assert "2099" not in refusal.failure.message


def test_session_ids_are_visible_ascii_of_limited_length() -> None:
    fine = {"a": True, "!~": True, "": False, "a b": False, "é": False, "a" * 257: False}
    assert {text: is_session_id(text) for text in fine} == fine


def test_event_ids_name_a_stream_and_a_position() -> None:
    named: dict[str, tuple[str, int] | None] = {"0a_1": ("0a", 1), "0123456789abcdef_0": ("0123456789abcdef", 0)}
    others = ("_1", "0a_", "0a", "0a_-1", "0a_1\n", "0a_١", "0A_1", "0a_1_2", "0a_" + "9" * 16, "a" * 65 + "_1")
    named.update(dict.fromkeys(others))
    assert {text: read_event_id(text) for text in named} == named


# Bodies


ONE = Request(1, "ping")


BODIES: list[tuple[Message, Version | None, int | None]] = [
    (ONE, V2025_11_25, None),
    (Response(1, {}), V2025_11_25, None),
    (decode(b"{"), V2025_11_25, -32700),
    (decode(b"{}"), V2025_11_25, -32600),
    (Batch((ONE,)), None, -32600),
    (Batch((ONE,)), V2025_06_18, -32600),
    (Batch((ONE,)), V2025_03_26, None),
    (Batch((Notification("x"),)), V2025_03_26, None),
    (Batch((Notification("x"),) * 1_001), V2025_03_26, -32600),
    (decode(b"[1, 2]"), V2025_03_26, -32600),
]


def test_invalid_bodies_for_a_session_get_status_400() -> None:
    refusals = [check_handshake_body(message, version) for message, version, _ in BODIES]
    assert [one and one.failure.code for one in refusals] == [code for *_, code in BODIES]
    assert {one.status for one in refusals if one} == {400}


def test_batches_with_malformed_messages_reach_the_session() -> None:
    batch = decode(b'[1, {"jsonrpc": "2.0", "id": 1, "method": "ping"}]')
    assert check_handshake_body(batch, V2025_03_26) is None
    assert request_ids(batch) == (1,)


def test_request_ids_of_messages_and_batches_are_listed() -> None:
    assert request_ids(ONE) == (1,)
    assert request_ids(Notification("x")) == ()
    assert request_ids(Batch((ONE, Notification("x"), Request("1", "ping")))) == (1, "1")


def test_each_error_code_has_an_http_status() -> None:
    wrong = dict.fromkeys((-32700, -32600, -32602, -32020, -32021, -32022), 400)
    statuses = {**wrong, -32601: 404, -32603: 200, 1: 200}
    assert {code: stateless_status(RpcError("x", code=code)) for code in statuses} == statuses
    assert {code: stateless_status(failure(1, RpcError("x", code=code))) for code in statuses} == statuses
    assert stateless_status(Response(1, {})) == stateless_status(InternalError("x")) == 200
