"""Collection of the answers to a batch until all have arrived."""

from shared.protocol.session.batches import Batches
from shared.protocol.session.events import Outgoing
from shared.protocol.wire.jsonrpc import Batch, Failure, Malformed, Notification, Request, Response


def open_batches(*messages):
    batches = Batches()
    batches.open(Batch(messages))
    return batches


def expecting(*ids):
    batches = open_batches(*(Request(id_, "m") for id_ in ids))
    for id_ in ids:
        batches.expect(id_)
    assert batches.close() is None
    return batches


def test_immediate_answers_are_sent_when_the_batch_is_closed():
    batches = open_batches(Request(1, "ping"), Request(2, "ping"))
    assert batches.add(Response(1, {})) is None
    assert batches.add(Response(2, {})) is None
    assert batches.close() == Outgoing(Batch((Response(1, {}), Response(2, {}))), 1)


def test_the_last_answer_completes_the_batch():
    batches = expecting(1, 2)
    assert batches.add(Response(2, {})) is None
    assert batches.add(Response(1, {})) == Outgoing(Batch((Response(2, {}), Response(1, {}))), 1)


def test_a_batch_of_notifications_gets_no_answer():
    assert open_batches(Notification("m")).close() is None


def test_batches_do_not_wait_for_cancelled_calls():
    batches = expecting(1, 2)
    assert batches.drop(3) is None  # an id of no batch
    assert batches.add(Response(2, {})) is None
    assert batches.drop(1) == Outgoing(Batch((Response(2, {}),)), 1)
    assert expecting(1).drop(1) == Outgoing(None, 1)  # no answer is left, and the batch ends


def test_batches_match_answers_by_value_and_type_of_the_id():
    batches = expecting(1)
    assert not batches.has("1")
    assert not batches.is_batched(Response("1", {}))
    assert not batches.is_batched(Response(2, {}))


def test_overlapping_batches_are_answered_separately():
    batches = expecting(1)
    batches.open(Batch((Request(1, "m"), Request(2, "m"))))
    refusal = Response(1, {"refused": True})
    batches.add(refusal)
    batches.add(Response(2, {}))
    assert batches.close() == Outgoing(Batch((refusal, Response(2, {}))), 1)
    assert batches.add(Response(1, {})) == Outgoing(Batch((Response(1, {}),)), 1)


def test_results_beyond_the_size_limit_of_a_batch_become_errors():
    batches, text = expecting(1, 2, 3), "x" * 5_000_000
    large = {"content": [{"type": "text", "text": text}]}
    assert batches.add(Response(1, large)) is None
    assert batches.add(Response(2, large)) is None
    answer = batches.add(Response(3, {}))
    first, second, third = answer.message.messages
    assert (first, third) == (Response(1, large), Response(3, {}))
    assert isinstance(second, Failure)
    assert second.message.startswith("the call was made, but its result is left out, because the results of")


def test_results_of_answered_batches_do_not_count_toward_the_limit():
    batches = expecting(1)
    large = Response(1, {"content": [{"type": "text", "text": "x" * 5_000_000}]})
    for _ in range(3):
        assert batches.add(large) == Outgoing(Batch((large,)), 1)
        batches.open(Batch((Request(1, "m"),)))
        batches.expect(1)
        batches.close()
    assert batches.size == 0


def test_initialize_in_a_batch_is_refused():
    (refused, accepted) = Batches().open(Batch((Request(1, "initialize"), Request(2, "ping"))))
    assert isinstance(refused, Malformed)
    assert (refused.failure.id, refused.failure.code) == (1, -32600)
    assert accepted == Request(2, "ping")
