"""The ids of the open requests of a dialect."""

import pytest

from shared.errors import InvalidParams, InvalidRequest
from shared.protocol.types.base import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from shared.protocol.wire.dialects.open_requests import OpenRequest, OpenRequests, add_envelope, is_id
from shared.protocol.wire.jsonrpc import Failure, Malformed

IDS = [None, 1, "1", "", 0, -5, 2**70]


def test_requests_are_distinguished_by_value_and_type_of_the_id():
    requests = OpenRequests()
    numbers = {id_: requests.open(id_, f"mcp/{id_}", "x", {}).id for id_ in IDS}
    assert len(set(numbers.values())) == len(IDS)
    for id_, number in numbers.items():
        assert requests.number_of(id_) == number
        assert requests.close(number) == OpenRequest(id_, f"mcp/{id_}")
    assert len(requests) == 0


def test_ids_in_use_are_refused():
    for id_ in IDS:
        requests = OpenRequests()
        first = requests.open(id_, "a", "x", {})
        with pytest.raises(InvalidRequest, match="in use"):
            requests.open(id_, "b", "x", {})
        assert requests.close(first.id) == OpenRequest(id_, "a")
        assert requests.open(id_, "b", "x", {}).id != first.id


def test_refusals_do_not_close_the_open_request_with_the_same_id():
    requests = OpenRequests()
    first = requests.open(7, "a", "x", {})
    refused = requests.refuse(Failure(7, -32600, "no", [1]))
    assert isinstance(refused, Malformed)
    assert refused.failure == Failure(refused.failure.id, -32600, "no", [1])
    assert requests.close(refused.failure.id) == OpenRequest(7)
    assert requests.number_of(7) == first.id


def test_closed_and_unknown_requests_are_not_returned():
    requests = OpenRequests()
    requests.close(requests.open("x", "a", "x", {}).id)
    for number in (None, 5, "1"):
        assert requests.find(number) is None
        assert requests.close(number) is None


def test_values_other_than_strings_integers_and_null_are_not_ids():
    for value in (True, 1.0, [], {}, "\ud800"):
        assert not is_id(value)
        assert OpenRequests().number_of(value) is None


def test_closed_requests_are_removed():
    requests = OpenRequests()
    for number in range(1_000):
        requests.close(requests.open(number % 7, "a", "x", {}).id)
        requests.close(requests.refuse(Failure(None, -32600, "no")).failure.id)
    assert len(requests) == 0
    assert requests.open(3, "a", "x", {})


def test_envelopes_have_the_newest_version_and_no_capabilities():
    meta = add_envelope({"a": 1}, "t")["_meta"]
    assert meta == {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {}, "progressToken": "t"}
    assert add_envelope({"_meta": {"progressToken": 0}}, "t")["_meta"]["progressToken"] == 0


def test_meta_other_than_an_object_is_refused():
    with pytest.raises(InvalidParams, match="_meta"):
        add_envelope({"_meta": []})
