"""Whatever a client sends instead of messages: each gets its answer, or none, and the server goes on."""

import json
from pathlib import Path

import pytest

from tests.checks.faults.raw import FILES, INITIALIZE, INITIALIZED, SLOW, Raw, call, lines, request, stateless

NO_ID = object()

# A line, the code of its answer (None: no answer), and the id of that.
BAD = [
    # No JSON
    (b"{", -32700, NO_ID),
    (b"nonsense", -32700, NO_ID),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', -32700, NO_ID),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}}', -32700, NO_ID),
    (b"{'jsonrpc': '2.0'}", -32700, NO_ID),
    (b"\xff\xfe{}", -32700, NO_ID),
    (b'{"jsonrpc": "2.0", "id": "\xc3", "method": "ping"}', -32700, NO_ID),
    (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', -32700, NO_ID),
    (b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}', -32700, NO_ID),
    # JSON that no text in UTF-8 can hold, and what others take for JSON: answered under its id
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\\ud800"}}', -32602, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\xff"}}', -32602, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": NaN}}', -32602, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": %s}}' % (b"[" * 250 + b"]" * 250), -32602, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\t"}}', -32700, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "pi\\ud800ng"}', -32600, 1),
    (b'{"method": "ping", "params": {"a": "%s"}, "jsonrpc": "2.0", "id": 1}' % (b"x" * 65 * 1_048_576), -32600, 1),
    (b'{"jsonrpc": "2.0", "method": "ping", "params": {"a": "\\ud800"}}', None, None),
    (b"[" * 100_000, -32700, NO_ID),
    (b'{"a":' * 100_000, -32700, NO_ID),
    (b"1" * 5_000, -32700, NO_ID),
    (b"\x00", -32700, NO_ID),
    # JSON, but no message
    (b"[]", -32600, NO_ID),
    (b"1", -32600, NO_ID),
    (b"null", -32600, NO_ID),
    (b'"ping"', -32600, NO_ID),
    (b"{}", -32600, NO_ID),
    (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600, 1),
    (b'{"jsonrpc": 2.0, "id": 1, "method": "ping"}', -32600, 1),
    (b'{"id": 1, "method": "ping"}', -32600, 1),
    (b'{"jsonrpc": "2.0", "id": 1}', -32600, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "Method": "ping"}', -32600, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": null}', -32600, 1),
    # Ids of the wrong type
    *(
        (b'{"jsonrpc": "2.0", "id": %s, "method": "ping"}' % id_, -32600, NO_ID)
        for id_ in (b"null", b"true", b"false", b"1.5", b"1.0", b"1e3", b"[1]", b'{"a": 1}')
    ),
    # Params of the wrong shape
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [1]}', -32602, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": "x"}', -32602, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}', -32602, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}', -32602, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "no such tool"}}', -32602, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": []}}', -32602, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": 1}}', -32602, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"progressToken": true}}}', -32602, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": "forged"}}', -32602, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": 5}}', -32602, 1),
    # Unknown methods, and those that are not for servers
    (b'{"jsonrpc": "2.0", "id": 1, "method": "no/such"}', -32601, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": ""}', -32601, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "Ping"}', -32601, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "roots/list"}', -32601, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "__class__"}', -32601, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "%s"}' % (b"x" * 100_000), -32601, 1),
    (lines(INITIALIZE).strip(), -32600, "init"),
    # A batch, in a version that has none
    (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600, NO_ID),
    # Never answered: blank lines, notifications, answers to nothing
    (b"", None, None),
    (b" \t\r", None, None),
    (b'{"jsonrpc": "2.0", "method": "no/such"}', None, None),
    (b'{"jsonrpc": "2.0", "method": "notifications/no/such", "params": {}}', None, None),
    (b'{"jsonrpc": "2.0", "method": "notifications/cancelled"}', None, None),
    (b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]}', None, None),
    (b'{"jsonrpc": "2.0", "method": "notifications/initialized"}', None, None),
    (b'{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo"}}', None, None),
    (b'{"jsonrpc": "2.0", "method": "ping"}', None, None),
    (b'{"jsonrpc": "2.0", "id": 77, "result": {}}', None, None),
    (b'{"jsonrpc": "2.0", "id": "x", "result": {}}', None, None),
    (b'{"jsonrpc": "2.0", "id": true, "result": {}}', None, None),
    (b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}', None, None),
    (b'{"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}}', None, None),
    (b'{"jsonrpc": "2.0", "id": 1, "error": "x"}', None, None),
    (b'{"jsonrpc": "2.0", "id": 1, "result": 5}', None, None),
    (b'{"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "x"}}', None, None),
]


def test_each_bad_line_gets_what_it_deserves(tmp_path: Path) -> None:
    found = []
    with Raw([*FILES, str(tmp_path)]).open() as server:
        for line, code, id_ in BAD:
            server.send_bytes(line + b"\n")
            if code is not None:
                message = server.receive()
                if (message["error"]["code"], message.get("id", NO_ID)) != (code, id_):
                    found.append((line[:100], message))
            server.send(request("after", "ping"))
            assert server.receive() == {"jsonrpc": "2.0", "id": "after", "result": {}}, line[:100]
        server.close_stdin()
        assert server.rest() == []
        assert server.wait() == 0
        assert server.stderr() == ""
    assert not found


def test_no_answer_says_more_than_it_should() -> None:
    with Raw(SLOW).open() as server:
        server.send(call(1, "fail"), call(2, "echo", text=5), call(3, "echo", **{"x" * 100_000: 1}))
        assert server.answer(1)["error"] == {"code": -32603, "message": "internal error"}
        assert "Traceback" not in json.dumps(server.answer(2))
        assert len(json.dumps(server.answer(3))) < 300_000


def test_an_id_comes_back_as_it_was() -> None:
    with Raw(SLOW) as server:
        for id_ in (0, -1, 2**63, 10**4_000, "", "7", "\u2028\x00\U0001f600", "x" * 1_000_000):
            server.send(request(id_, "ping"))
            assert server.receive() == {"jsonrpc": "2.0", "id": id_, "result": {}}


def test_ids_of_different_types_are_different_ids() -> None:
    with Raw(SLOW).open() as server:
        server.send(call(7, "hold"))
        server.begun()
        server.send(call("7", "echo", text="the string"))
        assert server.answer("7")["result"]["content"][0]["text"] == "the string"
        server.send(call(7, "echo", text="taken"))
        assert server.answer(7)["error"]["code"] == -32600


def test_an_id_in_use_is_refused_and_the_first_call_goes_on() -> None:
    with Raw(SLOW).open() as server:
        server.send(call("a", "hold", seconds=0.1), call("a", "echo", text="second"))
        first, second = server.answer("a"), server.answer("a")
        assert first["error"]["code"] == -32600
        assert second["result"]["content"][0]["text"] == "held"
        server.send(call("a", "echo", text="third"))
        assert server.answer("a")["result"]["content"][0]["text"] == "third"


def test_requests_before_initialize_are_refused_but_for_ping() -> None:
    with Raw(SLOW) as server:
        server.send(request(1, "tools/list"), request(2, "ping"), INITIALIZED, request(3, "tools/list"))
        assert [server.receive().get("error", {}).get("code") for _ in range(3)] == [-32600, None, -32600]


@pytest.mark.parametrize("version", ["1999-01-01", "2025-11-25 ", "2026-07-28"])
def test_initialize_with_a_version_that_it_does_not_have_offers_another(version: str) -> None:
    asked = request("init", "initialize", {**INITIALIZE["params"], "protocolVersion": version})
    with Raw(SLOW) as server:
        server.send(asked)
        assert server.answer("init")["result"]["protocolVersion"] == "2025-11-25"


def test_initialize_with_no_version_is_refused_and_may_be_sent_again() -> None:
    with Raw(SLOW) as server:
        for version in (5, None, True, ["2025-11-25"]):
            server.send(request("init", "initialize", {**INITIALIZE["params"], "protocolVersion": version}))
            assert server.answer("init")["error"]["code"] == -32602
        server.open()


def test_a_stateless_request_of_an_unknown_version_names_those_there_are() -> None:
    message = stateless(request(1, "tools/list"))
    with Raw(SLOW) as server:
        for version in ("1999-01-01", "2025-11-25", "", "2026-07-28 "):
            message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = version
            server.send(message)
            error = server.answer(1)["error"]
            assert error["code"] == -32022
            assert "2026-07-28" in error["data"]["supported"]
