"""Cancelling (Utilities, Cancellation): what was cancelled is not answered, and nothing else is touched by it."""

import json
from typing import Any

from tests.checks.faults.raw import INITIALIZE, INITIALIZED, SLOW, Json, Raw, call, lines, request, stateless

URI = "slow:///thing"


def cancel(id: Any) -> Json:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}


def ids(messages: list[Json]) -> list[Any]:
    return [message["id"] for message in messages if "method" not in message]


def test_a_cancelled_call_is_not_answered_and_its_id_is_free_at_once() -> None:
    with Raw(SLOW).open() as server:
        server.send(call(1, "hold"))
        server.begun()
        server.send(cancel(1), call(1, "echo", text="again"))
        assert server.answer(1)["result"]["content"][0]["text"] == "again"
        server.close_stdin()
        assert server.rest() == []
        assert server.wait() == 0


def test_a_stateless_call_is_cancelled_likewise() -> None:
    with Raw(SLOW) as server:
        server.send(stateless(call("a", "hold")))
        server.begun()
        server.send(cancel("a"), stateless(call("a", "echo", text="again")))
        assert server.receive()["result"]["content"][0]["text"] == "again"


def test_a_tool_that_clings_to_its_life_does_not_answer_another_call() -> None:
    with Raw(SLOW) as server:
        server.send(stateless(call("a", "cling")))
        server.begun()
        server.send(cancel("a"), stateless(call("a", "hold", seconds=0.4)))
        assert server.answer("a")["result"]["content"][0]["text"] == "held"


def test_a_stream_may_take_the_id_of_a_cancelled_one() -> None:
    listen = stateless(request("a", "subscriptions/listen", {"notifications": {"resourceSubscriptions": [URI]}}))
    with Raw(SLOW) as server:
        server.send(listen)
        assert server.receive()["method"] == "notifications/subscriptions/acknowledged"
        server.send(cancel("a"), listen)
        assert server.receive()["method"] == "notifications/subscriptions/acknowledged"
        server.send(stateless(call(1, "change")))
        assert server.until(lambda message: message.get("method") == "notifications/resources/updated")
        server.close_stdin()
        assert [message["id"] for message in server.rest() if "result" in message] in (["a"], [1, "a"])
        assert server.wait() == 0


def test_a_tool_that_clings_to_its_life_is_not_answered_either() -> None:
    with Raw(SLOW).open() as server:
        server.send(call(1, "cling"))
        server.begun()
        server.send(cancel(1), call(1, "echo", text="again"), call(2, "hold", seconds=0.4))
        assert server.receive()["result"]["content"][0]["text"] == "again"
        assert server.answer(2)["result"]["content"][0]["text"] == "held"
        server.close_stdin()
        assert server.rest() == []
        assert server.wait() == 0


def test_a_cancellation_that_does_not_fit_cancels_nothing() -> None:
    with Raw(SLOW).open() as server:
        server.send(call(1, "hold", seconds=0.3))
        server.begun()
        server.send(*(cancel(id_) for id_ in ("1", True, 1.0, None, [1], {"id": 1}, 2, -1, "", "x" * 100_000)))
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}})
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestid": 1}})
        assert server.answer(1)["result"]["content"][0]["text"] == "held"


def test_cancelling_what_has_not_come_yet_cancels_nothing() -> None:
    with Raw(SLOW).open() as server:
        server.send(cancel(5), call(5, "echo", text="served"))
        assert server.receive()["result"]["content"][0]["text"] == "served"
        server.send(cancel(5), call(5, "echo", text="served"))
        assert server.receive()["result"]["content"][0]["text"] == "served"


def test_initialize_can_not_be_cancelled() -> None:
    with Raw(SLOW) as server:
        server.send_bytes(lines(cancel("init"), INITIALIZE, cancel("init"), INITIALIZED, request(1, "tools/list")))
        assert ids([server.receive(), server.receive()]) == ["init", 1]


def test_ten_thousand_cancellations_of_nothing() -> None:
    with Raw(SLOW).open() as server:
        before = server.memory()
        server.send(*(cancel(number) for number in range(10_000)), call("after", "echo", text="fine"))
        assert server.receive()["result"]["content"][0]["text"] == "fine"
        assert server.memory() - before < 20_000_000


def test_ten_thousand_calls_cancelled_at_once() -> None:
    with Raw(SLOW).open() as server:
        before = server.memory()
        server.send_bytes(lines(*(one for id_ in range(10_000) for one in (call(id_, "hold"), cancel(id_)))))
        server.send(call("after", "echo", text="fine"))
        messages = [server.receive()]
        while "id" not in messages[-1]:
            messages.append(server.receive())
        assert ids(messages) == ["after"]
        assert server.memory() - before < 60_000_000
        server.close_stdin()
        assert ids(server.rest()) == []
        assert server.wait() == 0


def test_calls_that_wait_for_their_turn_are_cancelled_too() -> None:
    with Raw([*SLOW, "--max-calls", "1"]).open() as server:
        server.send(call(0, "hold"))
        server.begun()
        server.send(*(call(id_, "hold") for id_ in range(1, 1_000)), call("last", "echo", text="my turn"))
        server.send(*(cancel(id_) for id_ in range(1_000)))
        messages = [server.receive()]
        while "id" not in messages[-1]:
            messages.append(server.receive())
        assert ids(messages) == ["last"]


def test_a_cancelled_question_is_withdrawn_and_its_late_answer_ignored() -> None:
    declared = {**INITIALIZE["params"], "capabilities": {"elicitation": {}}}
    with Raw(SLOW) as server:
        server.send(request("init", "initialize", declared), INITIALIZED, call(1, "ask"))
        question = server.until(lambda message: message.get("method") == "elicitation/create")
        server.send(cancel(1))
        withdrawn = server.receive()
        assert withdrawn["method"] == "notifications/cancelled"
        assert withdrawn["params"]["requestId"] == question["id"]
        late = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "x"}}}
        server.send(late, late, request(2, "ping"))
        assert server.receive() == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_a_question_is_answered_once() -> None:
    declared = {**INITIALIZE["params"], "capabilities": {"elicitation": {}}}
    with Raw(SLOW) as server:
        server.send(request("init", "initialize", declared), INITIALIZED, call(1, "ask"))
        id_ = server.until(lambda message: message.get("method") == "elicitation/create")["id"]
        wrong = [
            json.loads(json.dumps({"jsonrpc": "2.0", "id": one, "result": {}})) for one in (str(id_), id_ + 1, True)
        ]
        right = {"jsonrpc": "2.0", "id": id_, "result": {"action": "accept", "content": {"name": "Ada"}}}
        other = {"jsonrpc": "2.0", "id": id_, "result": {"action": "accept", "content": {"name": "Eve"}}}
        server.send(*wrong, right, other)
        assert server.answer(1)["result"]["content"][0]["text"] == "Ada"
        server.close_stdin()
        assert server.rest() == []
