"""`ServerSession`, without I/O: messages in, events and messages out.

The answers of each version are in tests/transcripts.
"""

from dataclasses import replace
from typing import Any

import pytest

from shared.errors import (
    CallTimeout,
    InputRequired,
    InternalError,
    InvalidArguments,
    InvalidRequest,
    MissingCapability,
    ToolError,
)
from shared.protocol.identity import Identity, Principal
from shared.protocol.methods import method_table
from shared.protocol.session.events import (
    Answered,
    Call,
    Cancelled,
    Change,
    Outgoing,
    RootsChanged,
    UnknownNotification,
)
from shared.protocol.session.handshake import NEW
from shared.protocol.session.questions import elicit_form, find_asker, list_roots
from shared.protocol.session.server import ServerSession
from shared.protocol.session.subscriptions import Listen
from shared.protocol.signing import Signer
from shared.protocol.types.base import Implementation
from shared.protocol.versions import HANDSHAKE_VERSIONS
from shared.protocol.wire.jsonrpc import Batch, Failure, Notification, Request, Response

ADA = Principal("ada")
IDENTITY = Identity(
    Implementation(name="a", version="1"), capabilities={"tools": {}, "resources": {"subscribe": True}, "logging": {}}
)
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
}
CALL = {"name": "echo", "arguments": {}}
FORM = elicit_form("?", {"type": "object", "properties": {}})
HANDSHAKES = [version.date for version in HANDSHAKE_VERSIONS]


def session(
    version: str | None = "2025-11-25", capabilities: dict[str, Any] | None = None, replica: int = 0
) -> ServerSession:
    table, signer = method_table(IDENTITY), Signer(b"key")
    made = ServerSession(IDENTITY, table, signer, principal=ADA, now=lambda: 0.0, replica=replica)
    if version is not None:
        info = {"name": "c", "version": "1"}
        params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": info}
        made.receive(Request("hello", "initialize", params))
        made.receive(Notification("notifications/initialized"))
        made.outgoing()
    return made


def session_with_call(id="c", *, version="2025-11-25", method="tools/call", capabilities=None, **meta):
    """Makes a session with one call under way; returns both."""
    made = session(version, capabilities)
    return made, begin(made, id, method, **meta)


def begin(made, id, method="tools/call", **meta):
    params = CALL if method == "tools/call" else {"uri": "a:b", "notifications": {}}
    (call,) = made.receive(Request(id, method, {**params, "_meta": meta}))
    assert isinstance(call, Call)
    return call


def sent(made):
    return [one.message for one in made.outgoing()]


# Messages of the peer


def test_a_call_is_an_event_with_its_params_as_a_model():
    (call,) = session().receive(Request(1, "tools/call", CALL))
    assert (call.id, call.method.name, call.params.name) == (1, "tools/call", "echo")
    assert call.peer.principal == ADA


def test_ping_is_answered_once_without_an_event():
    made = session()
    assert made.receive(Request(1, "ping")) == []
    assert made.outgoing() == [Outgoing(Response(1, {}), 1)]
    assert made.outgoing() == []


def test_unknown_notifications_are_events_without_an_answer():
    made = session()
    for method in ("no/such/notification", "tools/list", "notifications/progress"):
        assert (made.receive(Notification(method, {"a": 1})), sent(made)) == (
            [UnknownNotification(method, {"a": 1})],
            [],
        )


def test_roots_list_changed_notifications_are_counted():
    made = session()
    for times in (1, 2):
        assert made.receive(Notification("notifications/roots/list_changed")) == [RootsChanged()]
        assert made.roots_changed == times


def test_ids_may_be_reused_after_the_answer():
    made, call = session_with_call(7)
    assert made.receive(Request(7, "ping")) == []
    assert [(message.id, message.code) for message in sent(made)] == [(7, -32600)]
    assert len(made.receive(Request("7", "tools/call", CALL))) == 1  # a string and a number are different ids
    made.finish(call, {"content": []})
    assert len(made.receive(Request(7, "tools/call", CALL))) == 1


# Answers


def test_results_are_sent_with_the_id_of_the_request():
    made, call = session_with_call()
    made.finish(call, {"content": []})
    assert made.outgoing() == [Outgoing(Response("c", {"content": []}), "c")]


@pytest.mark.parametrize("end", ["a result", "an error", "questions", "cancel", "abandon"])
def test_ended_calls_send_nothing_more(end):
    made, call = session_with_call(**ENVELOPE)
    ends = {
        "a result": lambda: made.finish(call, {"content": []}),
        "an error": lambda: made.finish(call, ToolError("no")),
        "questions": lambda: made.finish(call, InputRequired({})),
        "cancel": lambda: made.cancel(call),
        "abandon": made.abandon,
    }
    ends[end]()
    assert (call.is_over, call.params, call.raw) == (True, None, None)
    assert len(made.outgoing()) == (end != "abandon")
    for again in ends.values():
        again()
    assert made.outgoing() == []


def test_ended_calls_do_not_end_later_calls_with_the_same_id():
    made, call = session_with_call(7)
    made.cancel(call)
    new = begin(made, 7)
    made.outgoing()
    made.finish(call, {"content": []})
    made.cancel(call)
    made.progress(call, 1, None, None)
    assert (made.outgoing(), new.is_over) == ([], False)


def test_abandoned_sessions_return_their_open_calls_once():
    made, call = session_with_call(1)
    other = begin(made, 2)
    assert made.abandon() == [call, other]
    assert made.abandon() == []


@pytest.mark.parametrize("version", HANDSHAKES)
def test_errors_in_tools_become_results(version):
    made, call = session_with_call(version=version)
    made.finish(call, ToolError("no paper"))
    (answer,) = sent(made)
    assert answer.result == {"content": [{"type": "text", "text": "no paper"}], "isError": True}
    late = begin(made, "late")
    made.finish(late, CallTimeout(2))
    assert sent(made)[0].result["isError"] is True
    wrong = begin(made, "wrong")
    made.finish(wrong, InvalidArguments("a: missing"))
    (answer,) = sent(made)
    assert answer.result["isError"] if version == "2025-11-25" else answer.code == -32602


def test_errors_outside_tools_are_internal_errors():
    for error in (ToolError("no"), CallTimeout(2), InternalError("no")):
        made, call = session_with_call(method="resources/read")
        made.finish(call, error)
        assert sent(made) == [Failure("c", -32603, str(error))]


# Cancelling


def test_cancelled_calls_are_events_without_an_answer():
    made, call = session_with_call()
    events = made.receive(Notification("notifications/cancelled", {"requestId": "c", "reason": "why not"}))
    assert events == [Cancelled(call, "why not")]
    assert made.outgoing() == [Outgoing(None, "c")]


def test_cancellations_without_a_matching_call_are_ignored():
    made, _ = session_with_call(1)
    for params in ({}, *({"requestId": id_} for id_ in (None, True, 1.0, "other"))):
        assert made.receive(Notification("notifications/cancelled", params)) == []
        assert made.outgoing() == []


@pytest.mark.parametrize("ids", [(1, "1"), ("1", 1)], ids=repr)
def test_ids_of_different_types_name_different_requests(ids):
    made, call = session_with_call(ids[0])
    cancelled = Notification("notifications/cancelled", {"requestId": ids[1]})
    assert made.receive(cancelled) == []  # as for any unknown id
    other = begin(made, ids[1])
    assert (made.receive(cancelled), call.is_over) == ([Cancelled(other, None)], False)


def test_cancelled_calls_send_no_notifications():
    made, call = session_with_call(progressToken="t")
    made.cancel(call)
    made.outgoing()
    made.progress(call, 1, None, None)
    made.log(call, "error", "late", None)
    made.notify(call, "notifications/late", {})
    assert made.outgoing() == []


# Progress and log messages


def test_progress_has_the_token_of_its_call_and_given_meta():
    made, call = session_with_call(progressToken="t")
    made.progress(call, 1, 2, "half")
    made.progress(call, 2, None, None, {"traceparent": "00-1"})
    expected = (
        {"progressToken": "t", "progress": 1, "total": 2, "message": "half"},
        {"progressToken": "t", "progress": 2, "_meta": {"traceparent": "00-1"}},
    )
    assert made.outgoing() == [Outgoing(Notification("notifications/progress", params), "c") for params in expected]


def test_a_log_level_applies_to_running_calls():
    made, call = session_with_call()
    made.receive(Request(1, "logging/setLevel", {"level": "debug"}))
    made.outgoing()
    made.log(call, "debug", "small", None)
    assert len(made.outgoing()) == 1


# Questions


def test_questions_in_the_handshake_era_are_requests_about_their_call():
    made, call = session_with_call(capabilities={"roots": {}})
    assert made.ask(call, {"a": list_roots(), "b": list_roots()}) == {"a": 1, "b": 2}
    assert made.outgoing() == [Outgoing(Request(1, "roots/list"), "c"), Outgoing(Request(2, "roots/list"), "c")]


def test_answers_to_a_question_are_an_event_once():
    for answer in (Response(1, {"roots": []}), Failure(1, -1, "no")):
        made, call = session_with_call(capabilities={"roots": {}})
        made.ask(call, {"a": list_roots()})
        for other in (Response(9, {}), Response("a", {}), Failure(None, -1, "no")):
            assert made.receive(other) == []
        assert made.receive(answer) == [Answered(1, answer)]
        assert made.receive(answer) == []


def test_answers_with_the_id_of_a_question_as_a_string_are_matched():
    for answer in (Response("1", {"roots": []}), Failure("1", -1, "no")):
        made, call = session_with_call(capabilities={"roots": {}})
        made.ask(call, {"a": list_roots()})
        assert made.receive(answer) == [Answered(1, replace(answer, id=1))]


def test_withdrawn_questions_are_cancelled_once_and_their_answers_ignored():
    made, call = session_with_call(capabilities={"roots": {}})
    made.ask(call, {"a": list_roots()})
    made.outgoing()
    made.withdraw(1)
    made.withdraw(1)
    params = {"requestId": 1, "reason": "no longer needed"}
    assert sent(made) == [Notification("notifications/cancelled", params)]
    assert made.receive(Response(1, {})) == []


def test_answers_of_the_next_round_are_available_to_the_call():
    made, call = session_with_call(**ENVELOPE)
    made.finish(call, InputRequired({}))
    state = sent(made)[0].result["requestState"]
    again = {**CALL, "_meta": ENVELOPE, "requestState": state, "inputResponses": {"a": {"roots": []}}}
    (call,) = made.receive(Request("d", "tools/call", again))
    assert made.ask(call, {"a": list_roots()})["a"].roots == []


def test_undeclared_questions_and_ended_calls_send_no_question():
    made, call = session_with_call(capabilities={"roots": {}})
    with pytest.raises(MissingCapability):
        made.ask(call, {"a": list_roots(), "b": FORM})
    assert made.outgoing() == []
    made.cancel(call)
    with pytest.raises(InvalidRequest, match="has ended"):
        made.ask(call, {"a": list_roots()})


# Subscriptions


def listening(id="s", *lists):
    made, call = session_with_call(id, version=None, method="subscriptions/listen", **ENVELOPE)
    made.acknowledge(call, Listen(id, frozenset(lists)))
    return made, call


def test_streams_are_acknowledged_before_their_first_change():
    made, _ = listening("s", "tools")
    made.deliver(Change("tools"))
    assert [one.message.method for one in made.outgoing()] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    ]


def test_cancelled_streams_are_not_opened():
    made, call = listening("s", "tools")
    made.cancel(call)
    made.outgoing()
    made.acknowledge(call, Listen("s", frozenset({"tools"})))
    made.deliver(Change("tools"))
    assert made.outgoing() == []


def test_streams_ended_by_the_server_get_one_result_and_one_notification():
    made, call = listening()
    made.outgoing()
    made.end_listen(call)
    made.end_listen(call)
    kinds = {type(message) for message in sent(made)}
    assert kinds == {Response, Notification}


@pytest.mark.parametrize("ready", [False, True])
def test_changes_wait_for_the_end_of_the_handshake(ready):
    made = session(None)
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    made.receive(Request(1, "initialize", params))
    if ready:
        made.receive(Notification("notifications/initialized"))
    made.outgoing()
    made.deliver(Change("tools"))
    assert len(made.outgoing()) == ready


# Batches


def test_batches_give_an_event_per_call_and_one_answer():
    made = session("2025-03-26")
    one, three = made.receive(
        Batch((Request(1, "tools/call", CALL), Request(2, "ping"), Request(3, "tools/call", CALL)))
    )
    assert (one.id, three.id, made.outgoing()) == (1, 3, [])
    for call in (one, three):
        made.finish(call, {"content": []})
    answers = (Response(2, {}), Response(1, {"content": []}), Response(3, {"content": []}))
    assert made.outgoing() == [Outgoing(Batch(answers), 1)]


def test_batches_of_too_many_messages_are_refused():
    made = session("2025-03-26")
    made.receive(Batch(tuple(Request(number, "ping") for number in range(1_001))))
    (refusal,) = sent(made)
    assert (refusal.code, refusal.message) == (-32600, "a batch may hold at most 1000 messages")
    made.receive(Batch(tuple(Request(number, "ping") for number in range(1_000))))
    (answered,) = sent(made)
    assert len(answered.messages) == 1_000


# Snapshots

PARAMS = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
INITIALIZE = Request("hello", "initialize", PARAMS)


def restored(made, **other):
    """Makes a session of another replica from a snapshot of `made`."""
    session_there = session(None, **other)
    session_there.restore(made.snapshot())
    return session_there


@pytest.mark.parametrize("version", HANDSHAKES)
def test_restored_sessions_have_the_same_peer(version):
    made = session(version, {"roots": {}})
    peer = begin(restored(made), "c").peer
    assert (peer.version.date, peer.capabilities, peer.principal) == (version, {"roots": {}}, ADA)
    assert peer.owner == begin(made, "c").peer.owner


def test_restored_sessions_refuse_initialize():
    there = restored(session())
    there.receive(INITIALIZE)
    assert [message.code for message in sent(there)] == [-32600]


def test_restored_sessions_send_changes_only_after_the_handshake():
    made = session(None)
    made.receive(INITIALIZE)
    opening, opened = restored(made), restored(session())
    for there in (opening, opened):
        there.deliver(Change("tools"))
    assert (len(sent(opening)), len(sent(opened))) == (0, 1)


def test_snapshots_have_the_log_level_and_the_count_of_root_changes():
    made = session()
    made.receive(Request(1, "logging/setLevel", {"level": "error"}))
    made.receive(Notification("notifications/roots/list_changed"))
    there = restored(made)
    assert there.roots_changed == 1
    assert begin(there, "c").peer.log_level == "error"


def test_sessions_recognize_outdated_snapshots():
    assert session(None).has_state(NEW)
    level = Request(1, "logging/setLevel", {"level": "error"})
    for message in (level, Notification("notifications/roots/list_changed")):
        made = session()
        before = made.snapshot()
        assert made.has_state(before)
        made.receive(message)
        assert not made.has_state(before)
        assert made.has_state(made.snapshot())


def test_snapshots_do_not_move_calls_and_questions():
    made = session(capabilities={"elicitation": {}})
    call = begin(made, "c")
    asked = made.ask(call, {"form": FORM})["form"]
    there = restored(made)
    assert there.receive(Response(asked, {})) == []
    assert begin(there, "c") is not call
    made.restore(there.snapshot())
    assert len(made.receive(Response(asked, {}))) == 1


def test_ids_of_questions_name_the_replica():
    for replica, first in ((0, 1), (1, (1 << 32) + 1), ((1 << 20) - 1, (1 << 52) - (1 << 32) + 1)):
        made = session(capabilities={"elicitation": {}}, replica=replica)
        asked = made.ask(begin(made, "c"), {"form": FORM})["form"]
        assert (asked, find_asker(asked)) == (first, replica)
        assert asked < 1 << 53
    assert [find_asker(id_) for id_ in (None, "1", -1, 0, True, 1.0)] == [None] * 6  # ids that no replica issued


def test_peers_of_different_replicas_have_different_session_numbers():
    owners = [begin(session(replica=replica), "c").peer.session for replica in (0, 1, 2)]
    assert [owner >> 32 for owner in owners] == [0, 1, 2]
