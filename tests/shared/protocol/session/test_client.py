"""`ClientSession`, without I/O: messages in, events and messages out."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.errors import RpcError
from shared.protocol.session.client import MAX_OWED, MAX_QUESTIONS, ClientIdentity, ClientSession, Era, first_version
from shared.protocol.session.client_events import MAX_INPUTS, Asked, InputWanted, Notified, Unusable, Withdrawn
from shared.protocol.session.events import Answered
from shared.protocol.types.tasks import TASKS
from shared.protocol.versions import NEWEST, NEWEST_HANDSHAKE, V2025_06_18, Version
from shared.protocol.wire.codec import decode
from shared.protocol.wire.jsonrpc import (
    Batch,
    Failure,
    Fate,
    Gap,
    Malformed,
    Notification,
    Request,
    Response,
    Unanswered,
)

ME = ClientIdentity({"name": "test", "version": "1"}, {"elicitation": {"form": {}}})
META = "io.modelcontextprotocol/"
ENVELOPE = {
    f"{META}protocolVersion": "2026-07-28",
    f"{META}clientCapabilities": {"elicitation": {"form": {}}},
    f"{META}clientInfo": {"name": "test", "version": "1"},
}
BOTH = pytest.mark.parametrize("mode", [NEWEST, NEWEST_HANDSHAKE])


def _sent(session: ClientSession) -> list[Any]:
    return [one.message for one in session.outgoing()]


def _open(mode: Version = NEWEST) -> ClientSession:
    """A session with nothing waiting to be sent."""
    session = ClientSession(ME, mode)
    session.outgoing()
    return session


# Opening


def test_a_handshake_offers_then_confirms() -> None:
    session = ClientSession(ME, NEWEST_HANDSHAKE)
    id_ = session.initialize()
    offer = {"protocolVersion": "2025-11-25", "capabilities": ME.capabilities, "clientInfo": ME.info}
    assert _sent(session) == [Request(id_, "initialize", offer)]
    result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}
    assert session.receive(Response(id_, result)) == [Answered(id_, Response(id_, result))]
    assert session.initialized(result)
    assert _sent(session) == [Notification("notifications/initialized")]
    assert session.server is not None
    assert (session.server.version, session.server.info) == ("2025-06-18", {"name": "s"})
    assert session.server.can("tools")
    assert not session.server.can("tools", "listChanged")


@pytest.mark.parametrize("version", ["2026-07-28", "2099-01-01", None, 7])
def test_a_version_we_do_not_speak_ends_the_handshake(version: Any) -> None:
    session = _open(NEWEST_HANDSHAKE)
    assert not session.initialized({"protocolVersion": version})
    assert _sent(session) == []


DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "instructions": "Do."}
ANSWERS = [
    (Response(1, DISCOVERED), Era.STATELESS),
    (Response(1, {"supportedVersions": ["2025-06-18", "2025-03-26"]}), Era.HANDSHAKE),
    (Response(1, {"supportedVersions": ["2099-01-01"]}), Era.NONE),
    (Response(1, {}), Era.HANDSHAKE),
    (Failure(1, -32601, "no such method"), Era.HANDSHAKE),
    (Failure(1, -32600, "initialize first"), Era.HANDSHAKE),
    (Failure(1, 400, "HTTP 400"), Era.HANDSHAKE),
    (Failure(1, 401, "HTTP 401"), Era.NONE),
    (Failure(1, -32020, "header mismatch"), Era.STATELESS),
    (Failure(1, -32021, "capability missing"), Era.STATELESS),
    (Failure(1, -32022, "no", {"supported": ["2025-11-25"], "requested": "2026-07-28"}), Era.HANDSHAKE),
    (Failure(1, -32022, "no", {"supported": ["2099-01-01"], "requested": "2026-07-28"}), Era.NONE),
    (Failure(1, -32022, "no", {"supported": "2026"}), Era.HANDSHAKE),
    (None, Era.HANDSHAKE),
]


@pytest.mark.parametrize(("answer", "era"), ANSWERS)
def test_the_era_follows_from_the_answer_to_discover(answer: Response | Failure | None, era: Era) -> None:
    session = _open()
    session.discover()
    assert session.discovered(answer) is era
    assert (session.server is not None) == (era is Era.STATELESS)


def test_a_handshake_after_discover_offers_the_newest_version_in_common() -> None:
    session = _open()
    assert session.discovered(Response(1, {"supportedVersions": ["2025-03-26", "2025-06-18"]})) is Era.HANDSHAKE
    session.initialize()
    assert _sent(session)[0].params["protocolVersion"] == V2025_06_18.date


def test_discover_tells_what_the_server_is() -> None:
    session = _open()
    info = {"_meta": {f"{META}serverInfo": {"name": "s", "version": "2"}}}
    session.discovered(Response(1, {**DISCOVERED, **info}))
    assert session.server is not None
    assert (session.server.info["name"], session.server.instructions) == ("s", "Do.")


@pytest.mark.parametrize("mode", ["auto", "stateless", "handshake", "2024-11-05"])
def test_a_mode_is_a_word_or_a_date(mode: str) -> None:
    assert first_version(mode).date in ("2026-07-28", "2025-11-25", "2024-11-05")


def test_no_other_mode_exists() -> None:
    with pytest.raises(ValueError, match="not 'modern'"):
        first_version("modern")


# Requests


def test_stateless_requests_carry_the_envelope() -> None:
    session = _open()
    id_ = session.request("tools/list", {"_meta": {"traceparent": "t"}, "cursor": "c"}, progress=True)
    meta = {"traceparent": "t", "progressToken": id_, **ENVELOPE}
    assert _sent(session) == [Request(id_, "tools/list", {"cursor": "c", "_meta": meta})]


def test_the_log_level_is_part_of_the_envelope() -> None:
    session = ClientSession(ClientIdentity({}, {}, "debug"))
    session.request("tools/list", {})
    assert _sent(session)[0].params["_meta"][f"{META}logLevel"] == "debug"


def test_handshake_requests_carry_nothing_more() -> None:
    session = _open(NEWEST_HANDSHAKE)
    first, second = session.request("tools/list", {}), session.request("tools/list", {}, progress=True)
    expected = [Request(first, "tools/list"), Request(second, "tools/list", {"_meta": {"progressToken": second}})]
    assert _sent(session) == expected
    assert first != second


@BOTH
def test_an_answer_is_given_once(mode: Version) -> None:
    session = _open(mode)
    id_ = session.request("tools/list", {})
    answer = Failure(id_, -32602, "no")
    assert session.receive(answer) == [Answered(id_, answer)]
    assert session.receive(answer) == []


@BOTH
def test_what_answers_nothing_is_dropped(mode: Version) -> None:
    session = _open(mode)
    session.request("tools/list", {})
    session.outgoing()
    for message in [Response(99, {}), Response("1", {}), Failure(None, -32700, "?"), decode(b"{"), decode(b"[]")]:
        assert session.receive(message) == []
    assert _sent(session) == []


def test_an_answer_that_is_no_message_ends_the_request() -> None:
    session = _open()
    id_ = session.request("tools/list", {})
    assert session.receive(Malformed(Failure(id_, -32700, "cut"))) == [Unusable(id_, "cut")]


@pytest.mark.parametrize(
    "said", ['"result": []', '"result": {}, "error": {"code": 1, "message": ""}', '"error": "no"', '"a": 1']
)
@BOTH
def test_an_answer_of_another_form(mode: Version, said: str) -> None:
    session = _open(mode)
    id_ = session.request("tools/list", {})
    [event] = session.receive(decode(b'{"jsonrpc": "2.0", "id": %d, %b}' % (id_, said.encode())))
    assert isinstance(event, Unusable)
    assert event.id == id_


@pytest.mark.parametrize("said", ['"method": "roots/list", "params": null', '"method": 7'])
@BOTH
def test_a_question_of_another_form_is_none_about_our_request_of_that_id(mode: Version, said: str) -> None:
    session = _open(mode)
    id_ = session.request("tools/list", {})
    session.outgoing()
    assert session.receive(decode(b'{"jsonrpc": "2.0", "id": %d, %b}' % (id_, said.encode()))) == []
    assert [one.id for one in _sent(session)] == ([] if mode.stateless else [id_])
    assert session.receive(Response(id_, {})) == [Answered(id_, Response(id_, {}))]


@pytest.mark.parametrize("fate", ["unknown", "unreached", "session over"])
def test_a_transport_says_that_no_answer_will_come(fate: Fate) -> None:
    session = _open()
    id_ = session.request("tools/list", {})
    unanswered = Unanswered(id_, "cut", fate)
    assert session.receive(unanswered) == [Unusable(id_, "cut", fate)]
    assert session.receive(unanswered) == []


def test_a_gap_is_told() -> None:
    assert _open().receive(Gap()) == [Gap()]


def test_a_version_that_was_refused_is_offered_once_more() -> None:
    session = _open()
    refusal = Failure(1, -32022, "no", {"supported": ["2026-07-28"]})
    session.discover()
    assert session.discovered(refusal) is Era.AGAIN
    session.discover()
    assert session.discovered(refusal) is Era.NONE


def test_only_so_many_questions_at_once() -> None:
    session = _open(NEWEST_HANDSHAKE)
    asked = [session.receive(Request(number, "roots/list")) for number in range(MAX_QUESTIONS + 1)]
    assert [len(events) for events in asked] == [*[1] * MAX_QUESTIONS, 0]
    (refusal,) = _sent(session)
    assert (refusal.id, refusal.message) == (MAX_QUESTIONS, "too many questions at once")
    session.receive(Request("p", "ping"))
    assert _sent(session) == [Response("p", {})]


def test_who_reads_no_answers_is_owed_only_so_many() -> None:
    session = _open(NEWEST_HANDSHAKE)
    for number in range(MAX_OWED + 5):
        session.receive(Request(number, "ping"))
    assert len(_sent(session)) == MAX_OWED
    session.receive(Request("p", "ping"))
    assert _sent(session) == [Response("p", {})]


def _asks_what_is_none(session: ClientSession, number: int) -> None:
    session.receive(decode(f'{{"jsonrpc": "2.0", "id": {number}, "method": 3}}'.encode()))


def _asks_what_nobody_answers(session: ClientSession, number: int) -> None:
    session.receive(Request(number, "who/knows"))
    session.fail(number, RpcError("method not found"))


@pytest.mark.parametrize("ask", [_asks_what_is_none, _asks_what_nobody_answers])
def test_no_kind_of_answer_is_owed_without_bound(
    ask: Callable[[ClientSession, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.protocol.session.client.MAX_OWED", 5)
    session = _open(NEWEST_HANDSHAKE)
    for number in range(10):
        ask(session, number)
    assert len(_sent(session)) == 5


def test_a_batch_is_taken_apart() -> None:
    session = _open(NEWEST_HANDSHAKE)
    first, second = session.request("ping", {}), session.request("ping", {})
    events = session.receive(Batch((Response(second, {}), Response(first, {}))))
    assert [event.id for event in events] == [second, first]


@BOTH
def test_a_cancelled_request_has_no_answer(mode: Version) -> None:
    session = _open(mode)
    id_ = session.request("tools/call", {"name": "x"})
    session.outgoing()
    session.cancel(id_, "enough")
    session.cancel(id_, "enough")
    assert _sent(session) == [Notification("notifications/cancelled", {"requestId": id_, "reason": "enough"})]
    assert session.receive(Response(id_, {})) == []


@pytest.mark.parametrize("begin", [ClientSession.discover, ClientSession.initialize])
def test_opening_is_given_up_in_silence(begin: Any) -> None:
    session = _open()
    id_ = begin(session)
    session.outgoing()
    session.cancel(id_, "too late")
    assert _sent(session) == []
    assert session.receive(Response(id_, {})) == []


# Results of several kinds


def test_input_wanted() -> None:
    session = _open()
    id_ = session.request("tools/call", {"name": "x"})
    requests = {"k": {"method": "roots/list"}, "m": {"method": "elicitation/create", "params": {"message": "?"}}}
    result = {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}
    questions = {"k": ("roots/list", {}), "m": ("elicitation/create", {"message": "?"})}
    assert session.receive(Response(id_, result)) == [InputWanted(id_, questions, "s")]


def test_a_state_alone_may_be_wanted_back() -> None:
    session = _open()
    id_ = session.request("tools/call", {"name": "x"})
    result = {"resultType": "input_required", "requestState": ""}
    assert session.receive(Response(id_, result)) == [InputWanted(id_, {}, "")]


@pytest.mark.parametrize(
    "rest", [{}, {"inputRequests": {}}, {"inputRequests": {"k": 1}}, {"requestState": 1}, {"inputRequests": [1]}]
)
def test_a_misshapen_input_wanted_is_no_answer(rest: dict[str, Any]) -> None:
    session = _open()
    id_ = session.request("tools/call", {"name": "x"})
    [event] = session.receive(Response(id_, {"resultType": "input_required", **rest}))
    assert isinstance(event, Unusable)


@pytest.mark.parametrize(
    ("method", "kind"), [("tools/list", "input_required"), ("tools/call", "task"), ("tools/call", 1)]
)
def test_a_result_of_another_type_is_no_answer(method: str, kind: Any) -> None:
    session = _open()
    id_ = session.request(method, {})
    [event] = session.receive(Response(id_, {"resultType": kind, "requestState": "s"}))
    assert isinstance(event, Unusable)


def test_the_handshake_era_knows_no_result_types() -> None:
    session = _open(NEWEST_HANDSHAKE)
    id_ = session.request("tools/call", {"name": "x"})
    assert isinstance(session.receive(Response(id_, {"resultType": "mine"}))[0], Answered)


# Notifications


@BOTH
def test_progress_belongs_to_its_request(mode: Version) -> None:
    session = _open(mode)
    id_ = session.request("tools/call", {}, progress=True)
    params = {"progressToken": id_, "progress": 1}
    assert session.receive(Notification("notifications/progress", params)) == [
        Notified("notifications/progress", params, id_)
    ]
    session.receive(Response(id_, {}))
    assert session.receive(Notification("notifications/progress", params)) == []


@pytest.mark.parametrize("token", [True, "1", None, {}, 2])
def test_progress_of_nothing_is_dropped(token: Any) -> None:
    session = _open()
    assert session.request("tools/call", {}, progress=True) == 1
    assert session.request("tools/call", {}) == 2
    assert session.receive(Notification("notifications/progress", {"progressToken": token, "progress": 1})) == []


def test_a_change_belongs_to_its_stream() -> None:
    session = _open()
    id_ = session.request("subscriptions/listen", {"notifications": {}})
    params = {"_meta": {f"{META}subscriptionId": id_}}
    change = Notification("notifications/tools/list_changed", params)
    assert session.receive(change) == [Notified(change.method, params, id_)]
    session.cancel(id_, "enough")
    assert session.receive(change) == []


def test_a_change_of_no_stream_is_for_anyone() -> None:
    change = Notification("notifications/tools/list_changed")
    assert _open(NEWEST_HANDSHAKE).receive(change) == [Notified(change.method, {})]


def test_the_server_may_end_a_stream_by_cancelling() -> None:
    session = _open()
    listen, call = session.request("subscriptions/listen", {}), session.request("tools/call", {})
    assert session.receive(Notification("notifications/cancelled", {"requestId": call})) == []
    [event] = session.receive(Notification("notifications/cancelled", {"requestId": listen}))
    assert isinstance(event, Unusable)
    assert session.receive(Response(listen, {})) == []


# Questions


def test_a_question_is_answered_once() -> None:
    session = _open(NEWEST_HANDSHAKE)
    assert session.receive(Request("q", "roots/list")) == [Asked("q", "roots/list", {})]
    assert session.asked == 1
    session.respond("q", {"roots": []})
    session.fail("q", RpcError("late"))
    assert _sent(session) == [Response("q", {"roots": []})]
    assert session.asked == 0


def test_a_question_in_use_is_refused() -> None:
    session = _open(NEWEST_HANDSHAKE)
    session.receive(Request(1, "roots/list"))
    assert session.receive(Request(1, "roots/list")) == []
    assert _sent(session)[0].code == -32600


def test_a_question_taken_back_gets_no_answer() -> None:
    session = _open(NEWEST_HANDSHAKE)
    session.receive(Request(1, "roots/list"))
    back = Notification("notifications/cancelled", {"requestId": 1, "reason": "over"})
    assert session.receive(back) == [Withdrawn(1, "over")]
    assert session.receive(back) == []
    session.respond(1, {})
    assert _sent(session) == []


@pytest.mark.parametrize("id_", [True, None, 1.0, {}])
def test_a_malformed_cancel_is_ignored(id_: Any) -> None:
    session = _open(NEWEST_HANDSHAKE)
    session.receive(Request(1, "roots/list"))
    assert session.receive(Notification("notifications/cancelled", {"requestId": id_})) == []


def test_ping_is_answered_here() -> None:
    session = _open(NEWEST_HANDSHAKE)
    assert session.receive(Request(5, "ping")) == []
    assert _sent(session) == [Response(5, {})]


def test_a_mode_that_was_not_declared_is_refused() -> None:
    session = _open(NEWEST_HANDSHAKE)
    assert session.receive(Request(5, "elicitation/create", {"mode": "url"})) == []
    (refusal,) = _sent(session)
    assert (refusal.code, refusal.message) == (-32602, "this mode of elicitation was not declared")


@pytest.mark.parametrize(
    ("declared", "params", "asked"),
    [
        ({"form": {}}, {}, True),
        ({"form": {}}, {"mode": "form"}, True),
        ({"url": {}}, {"mode": "url"}, True),
        ({"url": {}}, {}, False),
        ({"url": {}}, {"mode": "form"}, False),
        ({}, {}, True),
        ({}, {"mode": "form"}, True),
        ({}, {"mode": "url"}, False),
    ],
)
def test_the_modes_that_were_declared_are_asked(declared: Any, params: Any, asked: bool) -> None:
    session = ClientSession(ClientIdentity(ME.info, {"elicitation": declared}), NEWEST_HANDSHAKE)
    assert bool(session.receive(Request(5, "elicitation/create", params))) is asked


def test_a_mode_is_of_elicitation_alone() -> None:
    asked = Request(5, "roots/list", {"mode": "url"})
    assert _open(NEWEST_HANDSHAKE).receive(asked) == [Asked(5, "roots/list", {"mode": "url"})]


def test_what_is_said_about_a_message_of_the_server_names_it() -> None:
    session = _open(NEWEST_HANDSHAKE)
    for id_ in (1, 2, 3):
        session.receive(Request(id_, "roots/list"))
    session.receive(Request(3, "roots/list"))
    session.respond(1, {})
    session.fail(2, RpcError("no", code=-32000))
    session.receive(Request(4, "ping"))
    assert [one.about for one in session.outgoing()] == [3, 1, 2, 4]


def test_why_the_client_failed_is_not_told() -> None:
    session = _open(NEWEST_HANDSHAKE)
    session.receive(Request(1, "roots/list"))
    session.fail(1, KeyError("secret"))
    assert [(one.code, one.message) for one in _sent(session)] == [(-32603, "the client could not answer")]


def test_stateless_servers_may_not_ask() -> None:
    session = _open()
    assert session.receive(Request(5, "ping")) == []
    assert _sent(session) == []


def test_an_error_of_a_handler_tells_no_detail() -> None:
    session = _open(NEWEST_HANDSHAKE)
    session.receive(Request(1, "roots/list"))
    session.fail(1, RpcError("the user said no", code=-1))
    assert _sent(session) == [Failure(1, -1, "the user said no")]


@pytest.mark.parametrize("mode", [{}, [], 1, None, True])
def test_a_mode_that_is_none_is_refused(mode: Any) -> None:
    session = _open(NEWEST_HANDSHAKE)
    assert session.receive(Request(1, "elicitation/create", {"mode": mode})) == []
    (refused,) = _sent(session)
    assert (refused.id, refused.code) == (1, -32602)


def test_more_questions_at_once_than_anybody_answers_are_no_result() -> None:
    session = _open()
    id_ = session.request("tools/call", {"name": "add"})
    questions = {str(number): {"method": "roots/list"} for number in range(MAX_INPUTS + 1)}
    (event,) = session.receive(Response(id_, {"resultType": "input_required", "inputRequests": questions}))
    assert isinstance(event, Unusable)


def test_task_that_a_cancelled_call_became_is_cancelled() -> None:
    session = ClientSession(ClientIdentity({}, {}, extensions={TASKS: {}}))
    id_ = session.request("tools/call", {"name": "work"})
    session.cancel(id_, "the client gave up")
    session.outgoing()
    assert session.receive(Response(id_, {"resultType": "task", "taskId": "t", "status": "working"})) == []
    (cancelled,) = session.outgoing()
    assert isinstance(cancelled.message, Request)
    assert (cancelled.message.method, cancelled.message.params["taskId"]) == ("tasks/cancel", "t")


def test_task_is_no_answer_where_none_was_declared() -> None:
    session = ClientSession(ClientIdentity({}, {}))
    id_ = session.request("tools/call", {"name": "work"})
    (event,) = session.receive(Response(id_, {"resultType": "task", "taskId": "t", "status": "working"}))
    assert isinstance(event, Unusable)


def test_extensions_of_stateless_requests_are_not_in_the_handshake() -> None:
    session = ClientSession(ClientIdentity({}, {"extensions": {"a": {}}}, extensions={TASKS: {}}), NEWEST_HANDSHAKE)
    session.initialize()
    (sent,) = session.outgoing()
    assert isinstance(sent.message, Request)
    assert sent.message.params["capabilities"] == {"extensions": {"a": {}}}
