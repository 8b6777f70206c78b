"""`ClientSession`, without I/O: messages in, events and messages out."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.errors import RpcError
from shared.protocol.session.client import (
    MAX_SERVER_REQUESTS,
    MAX_UNSENT_REPLIES,
    ClientIdentity,
    ClientSession,
    OpeningStep,
    first_version,
)
from shared.protocol.session.client_events import (
    MAX_INPUT_REQUESTS,
    InputWanted,
    Notified,
    ServerRequest,
    Stray,
    Unusable,
    Withdrawn,
)
from shared.protocol.session.events import Answered
from shared.protocol.types.tasks import TASKS
from shared.protocol.versions import NEWEST, NEWEST_HANDSHAKE, V2025_06_18, Version
from shared.protocol.wire.codec import decode
from shared.protocol.wire.jsonrpc import (
    Batch,
    Failure,
    Gap,
    Malformed,
    NoAnswerCause,
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
    """Makes a session without unsent messages."""
    session = ClientSession(ME, mode)
    session.outgoing()
    return session


def _open_with_request(
    mode: Version = NEWEST, method: str = "tools/call", *, progress: bool = False
) -> tuple[ClientSession, int]:
    """Makes a session with one request under way and no unsent messages; returns it with the id."""
    session = _open(mode)
    id_ = session.request(method, {}, progress=progress)
    session.outgoing()
    return session, id_


def _open_with_question(id_: Any = 1) -> ClientSession:
    """Makes a session with an open question of the server under that id."""
    session = _open(NEWEST_HANDSHAKE)
    assert session.receive(Request(id_, "roots/list")) == [ServerRequest(id_, "roots/list", {})]
    return session


@pytest.mark.parametrize(("mode", "cursors"), [(NEWEST, {"nextCursor": ""}), (NEWEST_HANDSHAKE, {})])
def test_an_empty_cursor_is_none_before_2026(mode: Version, cursors: dict[str, str]) -> None:
    session, id_ = _open_with_request(mode, "tools/list")
    (event,) = session.receive(Response(id_, {"tools": [], "nextCursor": ""}))
    assert event == Answered(id_, Response(id_, {"tools": [], **cursors}))


# Opening


def test_handshakes_send_initialize_and_then_initialized() -> None:
    session = ClientSession(ME, NEWEST_HANDSHAKE)
    id_ = session.initialize()
    offer = {"protocolVersion": "2025-11-25", "capabilities": ME.capabilities, "clientInfo": ME.info}
    assert _sent(session) == [Request(id_, "initialize", offer)]
    result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}
    assert session.receive(Response(id_, result)) == [Answered(id_, Response(id_, result))]
    assert session.handle_initialize(result)
    assert _sent(session) == [Notification("notifications/initialized")]
    assert session.server is not None
    assert (session.server.version, session.server.info) == ("2025-06-18", {"name": "s"})
    assert session.server.can("tools")
    assert not session.server.can("tools", "listChanged")


def test_unsupported_versions_end_the_handshake() -> None:
    for version in ("2026-07-28", "2099-01-01", None, 7):
        session = _open(NEWEST_HANDSHAKE)
        assert not session.handle_initialize({"protocolVersion": version})
        assert _sent(session) == []


DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "instructions": "Do."}
ANSWERS: list[tuple[Response | Failure | None, OpeningStep]] = [
    (Response(1, DISCOVERED), OpeningStep.STATELESS),
    (Response(1, {"supportedVersions": ["2025-06-18", "2025-03-26"]}), OpeningStep.HANDSHAKE),
    (Response(1, {"supportedVersions": ["2099-01-01"]}), OpeningStep.FAIL),
    (Response(1, {}), OpeningStep.HANDSHAKE),
    (Failure(1, -32601, "no such method"), OpeningStep.HANDSHAKE),
    (Failure(1, -32600, "initialize first"), OpeningStep.HANDSHAKE),
    (Failure(1, 400, "HTTP 400"), OpeningStep.HANDSHAKE),
    (Failure(1, 401, "HTTP 401"), OpeningStep.FAIL),
    (Failure(1, -32020, "header mismatch"), OpeningStep.STATELESS),
    (Failure(1, -32021, "capability missing"), OpeningStep.STATELESS),
    (Failure(1, -32022, "no", {"supported": ["2025-11-25"], "requested": "2026-07-28"}), OpeningStep.HANDSHAKE),
    (Failure(1, -32022, "no", {"supported": ["2099-01-01"], "requested": "2026-07-28"}), OpeningStep.FAIL),
    (Failure(1, -32022, "no", {"supported": "2026"}), OpeningStep.HANDSHAKE),
    (None, OpeningStep.HANDSHAKE),
]


def test_the_answer_to_discover_decides_the_next_opening_step() -> None:
    for answer, era in ANSWERS:
        session = _open()
        session.discover()
        assert session.handle_discovery(answer) is era, answer
        assert (session.server is not None) == (era is OpeningStep.STATELESS)


def test_handshakes_after_discover_offer_the_newest_common_version() -> None:
    session = _open()
    assert (
        session.handle_discovery(Response(1, {"supportedVersions": ["2025-03-26", "2025-06-18"]}))
        is OpeningStep.HANDSHAKE
    )
    session.initialize()
    assert _sent(session)[0].params["protocolVersion"] == V2025_06_18.date


def test_discover_gives_server_info_and_instructions() -> None:
    session = _open()
    info = {"_meta": {f"{META}serverInfo": {"name": "s", "version": "2"}}}
    session.handle_discovery(Response(1, {**DISCOVERED, **info}))
    assert session.server is not None
    assert (session.server.info["name"], session.server.instructions) == ("s", "Do.")


def test_modes_are_words_or_version_dates() -> None:
    dates = {"auto": "2026-07-28", "stateless": "2026-07-28", "handshake": "2025-11-25", "2024-11-05": "2024-11-05"}
    assert {mode: first_version(mode).date for mode in dates} == dates
    with pytest.raises(ValueError, match="not 'modern'"):
        first_version("modern")


# Requests


def test_stateless_requests_carry_the_envelope() -> None:
    session = _open()
    id_ = session.request("tools/list", {"_meta": {"traceparent": "t"}, "cursor": "c"}, progress=True)
    meta = {"traceparent": "t", "progressToken": id_, **ENVELOPE}
    assert _sent(session) == [Request(id_, "tools/list", {"cursor": "c", "_meta": meta})]


def test_envelopes_have_the_log_level() -> None:
    session = ClientSession(ClientIdentity({}, {}, "debug"))
    session.request("tools/list", {})
    assert _sent(session)[0].params["_meta"][f"{META}logLevel"] == "debug"


def test_handshake_requests_have_no_envelope() -> None:
    session = _open(NEWEST_HANDSHAKE)
    first, second = session.request("tools/list", {}), session.request("tools/list", {}, progress=True)
    expected = [Request(first, "tools/list"), Request(second, "tools/list", {"_meta": {"progressToken": second}})]
    assert _sent(session) == expected
    assert first != second


@BOTH
def test_second_answers_to_a_request_are_dropped(mode: Version) -> None:
    session, id_ = _open_with_request(mode)
    answer = Failure(id_, -32602, "no")
    assert session.receive(answer) == [Answered(id_, answer)]
    assert session.receive(answer) == []


@BOTH
def test_answers_without_an_open_request_are_dropped(mode: Version) -> None:
    session, _ = _open_with_request(mode)
    for message in [Response(99, {}), Response("a", {})]:
        assert session.receive(message) == []
    assert session.receive(Failure(None, -32700, "?")) == [Stray("?")]
    [stray] = session.receive(decode(b"{"))
    assert isinstance(stray, Stray)
    assert stray.text.endswith("; in a stream, a message must be one line")
    assert _sent(session) == []


def test_answers_with_the_id_as_a_string_are_matched() -> None:
    session, id_ = _open_with_request()
    assert session.receive(Response(str(id_), {"a": 1})) == [Answered(id_, Response(id_, {"a": 1}))]
    session, id_ = _open_with_request()
    assert session.receive(Failure(str(id_), -32000, "no")) == [Answered(id_, Failure(id_, -32000, "no"))]
    session, id_ = _open_with_request()
    assert session.receive(Malformed(Failure(str(id_), -32700, "cut"))) == [Unusable(id_, "cut", "invalid answer")]


def test_malformed_answers_end_the_request() -> None:
    session, id_ = _open_with_request()
    assert session.receive(Malformed(Failure(id_, -32700, "cut"))) == [Unusable(id_, "cut", "invalid answer")]


@BOTH
def test_answers_of_invalid_form_end_the_request(mode: Version) -> None:
    for members in ('"result": []', '"result": {}, "error": {"code": 1, "message": ""}', '"error": "no"', '"a": 1'):
        session, id_ = _open_with_request(mode)
        [event] = session.receive(decode(b'{"jsonrpc": "2.0", "id": %d, %b}' % (id_, members.encode())))
        assert isinstance(event, Unusable)
        assert event.id == id_


@BOTH
def test_malformed_questions_do_not_end_the_request_with_the_same_id(mode: Version) -> None:
    for members in ('"method": "roots/list", "params": []', '"method": 7'):
        session, id_ = _open_with_request(mode)
        assert session.receive(decode(b'{"jsonrpc": "2.0", "id": %d, %b}' % (id_, members.encode()))) == []
        assert [one.id for one in _sent(session)] == ([] if mode.stateless else [id_])
        assert session.receive(Response(id_, {})) == [Answered(id_, Response(id_, {}))]


def test_unanswered_events_of_the_transport_end_the_request() -> None:
    fates: list[NoAnswerCause] = ["unknown", "unreached", "session over"]
    for cause in fates:
        session, id_ = _open_with_request()
        unanswered = Unanswered(id_, "cut", cause)
        assert session.receive(unanswered) == [Unusable(id_, "cut", cause)]
        assert session.receive(unanswered) == []


def test_gaps_in_the_stream_are_events() -> None:
    assert _open().receive(Gap()) == [Gap()]


def test_discover_is_repeated_only_once_after_a_refused_version() -> None:
    session = _open()
    refusal = Failure(1, -32022, "no", {"supported": ["2026-07-28"]})
    session.discover()
    assert session.handle_discovery(refusal) is OpeningStep.RETRY
    session.discover()
    assert session.handle_discovery(refusal) is OpeningStep.FAIL


def test_questions_beyond_the_limit_are_refused() -> None:
    session = _open(NEWEST_HANDSHAKE)
    asked = [session.receive(Request(number, "roots/list")) for number in range(MAX_SERVER_REQUESTS + 1)]
    assert [len(events) for events in asked] == [*[1] * MAX_SERVER_REQUESTS, 0]
    (refusal,) = _sent(session)
    assert refusal == Failure(MAX_SERVER_REQUESTS, -31_000, "too many requests are in progress at once")
    session.receive(Request("p", "ping"))
    assert _sent(session) == [Response("p", {})]


def _send_ping(session: ClientSession, number: int) -> None:
    session.receive(Request(number, "ping"))


def _send_malformed(session: ClientSession, number: int) -> None:
    session.receive(decode(f'{{"jsonrpc": "2.0", "id": {number}, "method": 3}}'.encode()))


def _ask_unknown_method(session: ClientSession, number: int) -> None:
    session.receive(Request(number, "who/knows"))
    session.fail(number, RpcError("method not found"))


@pytest.mark.parametrize("ask", [_send_ping, _send_malformed, _ask_unknown_method])
def test_unsent_replies_are_limited(ask: Callable[[ClientSession, int], None]) -> None:
    session = _open(NEWEST_HANDSHAKE)
    for number in range(MAX_UNSENT_REPLIES + 5):
        ask(session, number)
    assert len(_sent(session)) == MAX_UNSENT_REPLIES
    session.receive(Request("p", "ping"))
    assert _sent(session) == [Response("p", {})]


def test_answers_in_a_batch_are_separate_events() -> None:
    session = _open(NEWEST_HANDSHAKE)
    first, second = session.request("ping", {}), session.request("ping", {})
    events = session.receive(Batch((Response(second, {}), Response(first, {}))))
    assert [event.id for event in events] == [second, first]


@BOTH
def test_answers_to_cancelled_requests_are_dropped(mode: Version) -> None:
    session, id_ = _open_with_request(mode)
    session.cancel(id_, "enough")
    session.cancel(id_, "enough")
    assert _sent(session) == [Notification("notifications/cancelled", {"requestId": id_, "reason": "enough"})]
    assert session.receive(Response(id_, {})) == []


@pytest.mark.parametrize("begin", [ClientSession.discover, ClientSession.initialize])
def test_cancelled_opening_requests_send_no_notification(begin: Any) -> None:
    session = _open()
    id_ = begin(session)
    session.outgoing()
    session.cancel(id_, "too late")
    assert _sent(session) == []
    assert session.receive(Response(id_, {})) == []


# Results of several kinds


def test_input_required_results_are_events() -> None:
    session, id_ = _open_with_request()
    requests = {"k": {"method": "roots/list"}, "m": {"method": "elicitation/create", "params": {"message": "?"}}}
    result = {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}
    questions = {"k": ("roots/list", {}), "m": ("elicitation/create", {"message": "?"})}
    assert session.receive(Response(id_, result)) == [InputWanted(id_, questions, "s")]
    session, id_ = _open_with_request()
    result = {"resultType": "input_required", "requestState": ""}
    assert session.receive(Response(id_, result)) == [InputWanted(id_, {}, "")]


MANY = {str(number): {"method": "roots/list"} for number in range(MAX_INPUT_REQUESTS + 1)}
UNUSABLE: list[tuple[str, dict[str, Any]]] = [
    *(("tools/call", {"resultType": "input_required", "inputRequests": one}) for one in ({}, {"k": 1}, [1], MANY)),
    ("tools/call", {"resultType": "input_required"}),
    ("tools/call", {"resultType": "input_required", "requestState": 1}),
    ("tools/list", {"resultType": "input_required", "requestState": "s"}),
    ("tools/call", {"resultType": "task", "taskId": "t", "status": "working"}),
    ("tools/call", {"resultType": 1, "requestState": "s"}),
]
"""Unusable results, by method: tasks that were not declared, too many questions, and invalid shapes."""


def test_results_of_invalid_shape_or_type_are_unusable() -> None:
    for method, result in UNUSABLE:
        session, id_ = _open_with_request(method=method)
        [event] = session.receive(Response(id_, result))
        assert isinstance(event, Unusable), result


def test_result_types_are_ignored_in_the_handshake_era() -> None:
    session, id_ = _open_with_request(NEWEST_HANDSHAKE)
    assert isinstance(session.receive(Response(id_, {"resultType": "mine"}))[0], Answered)


# Notifications


@BOTH
def test_progress_is_matched_to_its_open_request(mode: Version) -> None:
    session, id_ = _open_with_request(mode, progress=True)
    for token in (str(id_), id_):
        params = {"progressToken": token, "progress": 1}
        progress = Notification("notifications/progress", params)
        assert session.receive(progress) == [Notified("notifications/progress", params, id_)]
    session.receive(Response(id_, {}))
    assert session.receive(progress) == []


def test_progress_without_a_matching_request_is_dropped() -> None:
    session, _ = _open_with_request(progress=True)
    assert session.request("tools/call", {}) == 2
    for token in (True, "a", None, {}, 2, "2"):
        assert session.receive(Notification("notifications/progress", {"progressToken": token, "progress": 1})) == []


def test_changes_are_matched_to_their_open_stream() -> None:
    session, id_ = _open_with_request(method="subscriptions/listen")
    for stream in (str(id_), id_):
        params = {"_meta": {f"{META}subscriptionId": stream}}
        change = Notification("notifications/tools/list_changed", params)
        assert session.receive(change) == [Notified(change.method, params, id_)]
    session.cancel(id_, "enough")
    assert session.receive(change) == []
    of_none = Notification("notifications/tools/list_changed")
    assert _open(NEWEST_HANDSHAKE).receive(of_none) == [Notified(change.method, {})]


def test_a_cancelled_notification_of_the_server_ends_a_stream() -> None:
    session = _open()
    listen, call = session.request("subscriptions/listen", {}), session.request("tools/call", {})
    assert session.receive(Notification("notifications/cancelled", {"requestId": call})) == []
    [event] = session.receive(Notification("notifications/cancelled", {"requestId": str(listen)}))
    assert isinstance(event, Unusable)
    assert session.receive(Response(listen, {})) == []


# Questions


def test_second_answers_to_a_question_are_not_sent() -> None:
    session = _open_with_question("q")
    assert session.server_request_count == 1
    session.respond("q", {"roots": []})
    session.fail("q", RpcError("late"))
    assert _sent(session) == [Response("q", {"roots": []})]
    assert session.server_request_count == 0


def test_questions_with_an_id_in_use_are_refused() -> None:
    session = _open_with_question()
    assert session.receive(Request(1, "roots/list")) == []
    assert _sent(session)[0].code == -32600


def test_withdrawn_questions_get_no_answer() -> None:
    session = _open_with_question()
    for malformed in (True, None, 1.0, {}):
        assert session.receive(Notification("notifications/cancelled", {"requestId": malformed})) == []
    back = Notification("notifications/cancelled", {"requestId": 1, "reason": "over"})
    assert session.receive(back) == [Withdrawn(1, "over")]
    assert session.receive(back) == []
    session.respond(1, {})
    assert _sent(session) == []


def test_ping_is_answered_only_in_the_handshake_era() -> None:
    session = _open(NEWEST_HANDSHAKE)
    assert session.receive(Request(5, "ping")) == []
    assert _sent(session) == [Response(5, {})]
    session = _open()
    assert session.receive(Request(5, "ping")) == []
    assert _sent(session) == []


def test_undeclared_elicitation_modes_are_refused() -> None:
    session = _open(NEWEST_HANDSHAKE)
    for mode in ("url", {}, [], 1, None, True):
        assert session.receive(Request(5, "elicitation/create", {"mode": mode})) == []
        (refusal,) = _sent(session)
        assert (refusal.id, refusal.code) == (5, -32602), mode
        assert mode != "url" or refusal.message == "this mode of elicitation was not declared"


def test_declared_elicitation_modes_are_accepted() -> None:
    modes: list[tuple[dict[str, Any], dict[str, str], bool]] = [
        ({"form": {}}, {}, True),
        ({"form": {}}, {"mode": "form"}, True),
        ({"url": {}}, {"mode": "url"}, True),
        ({"url": {}}, {}, False),
        ({"url": {}}, {"mode": "form"}, False),
        ({}, {}, True),
        ({}, {"mode": "form"}, True),
        ({}, {"mode": "url"}, False),
    ]
    for declared, params, asked in modes:
        session = ClientSession(ClientIdentity(ME.info, {"elicitation": declared}), NEWEST_HANDSHAKE)
        assert bool(session.receive(Request(5, "elicitation/create", params))) is asked, (declared, params)


def test_modes_of_other_questions_are_ignored() -> None:
    asked = Request(5, "roots/list", {"mode": "url"})
    assert _open(NEWEST_HANDSHAKE).receive(asked) == [ServerRequest(5, "roots/list", {"mode": "url"})]


def test_outgoing_replies_name_the_request_of_the_server() -> None:
    session = _open(NEWEST_HANDSHAKE)
    for id_ in (1, 2, 3):
        session.receive(Request(id_, "roots/list"))
    session.receive(Request(3, "roots/list"))
    session.respond(1, {})
    session.fail(2, RpcError("no", code=-32000))
    session.receive(Request(4, "ping"))
    assert [one.related_request_id for one in session.outgoing()] == [3, 1, 2, 4]


def test_only_rpc_errors_of_handlers_reach_the_server() -> None:
    session = _open_with_question()
    session.fail(1, KeyError("secret"))
    assert [(one.code, one.message) for one in _sent(session)] == [(-32603, "the client could not answer")]
    session = _open_with_question()
    session.fail(1, RpcError("the user said no", code=-1))
    assert _sent(session) == [Failure(1, -1, "the user said no")]


def test_tasks_created_by_cancelled_calls_are_cancelled() -> None:
    session = ClientSession(ClientIdentity({}, {}, extensions={TASKS: {}}))
    id_ = session.request("tools/call", {"name": "work"})
    session.cancel(id_, "the client gave up")
    session.outgoing()
    assert session.receive(Response(id_, {"resultType": "task", "taskId": "t", "status": "working"})) == []
    (cancelled,) = session.outgoing()
    assert isinstance(cancelled.message, Request)
    assert (cancelled.message.method, cancelled.message.params["taskId"]) == ("tasks/cancel", "t")


def test_extensions_of_stateless_requests_are_absent_from_the_handshake() -> None:
    session = ClientSession(ClientIdentity({}, {"extensions": {"a": {}}}, extensions={TASKS: {}}), NEWEST_HANDSHAKE)
    session.initialize()
    (sent,) = session.outgoing()
    assert isinstance(sent.message, Request)
    assert sent.message.params["capabilities"] == {"extensions": {"a": {}}}
