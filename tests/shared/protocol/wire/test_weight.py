"""Estimates of the memory that a JSON text takes, before it is parsed."""

import pytest

from shared.protocol.wire.codec import Codec
from shared.protocol.wire.jsonrpc import Malformed, Notification, Request, json_of
from shared.protocol.wire.weight import MAX_LIGHT_BYTES, MAX_VALUES, count_values, weigh, weigh_result, weigh_value

SERVER = Codec(line_end=b"")
MANY = MAX_VALUES + 1


def call(arguments: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"n","arguments":%b}}' % arguments


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (b"[" + b",".join([b"[]"] * 20_000) + b"]", 40_000),
        (b"{" + b",".join(b'"%d":1' % number for number in range(20_000)) + b"}", 40_000),
        (b'{"text":"' + b"a,[{:" * 20_000 + b'"}', 2),
        (b'{"text":"' + b'\\",' * 20_000 + b'","last":[1,2]}', 6),
        (b'{"text":"' + rb"\\," * 20_000 + b'\\\\","last":[1,2]}', 6),
    ],
    ids=["lists", "members", "commas in a string", "escaped quotes", "escaped backslashes"],
)
def test_values_inside_strings_are_not_counted(text: bytes, values: int) -> None:
    assert count_values(text) == pytest.approx(values, abs=2)


@pytest.mark.parametrize(
    "arguments",
    [
        b'{"a":[' + b",".join([b"[]"] * MANY) + b"]}",
        b"{" + b",".join(b'"%d":1' % number for number in range(MANY)) + b"}",
        b'{"a":[' + b",".join([b'"x"'] * MANY) + b"]}",
    ],
    ids=["lists", "members", "strings"],
)
def test_refusals_of_messages_with_too_many_values_have_their_id(arguments: bytes) -> None:
    refused = SERVER.decode_body(call(arguments))
    assert isinstance(refused, Malformed)
    assert refused.failure.id == 7
    assert "110,000 values" in refused.failure.message


def test_large_strings_with_json_in_them_are_accepted() -> None:
    request = SERVER.decode_body(call(b'{"text":"' + b'{\\"a\\": [1, 2]},\\n' * 200_000 + b'"}'))
    assert isinstance(request, Request)


def test_names_of_members_count_as_values() -> None:
    members = [b'"%d":"x"' % number for number in range(MAX_VALUES // 2)]
    assert isinstance(SERVER.decode_body(call(b"{%b}" % b",".join(members[:-10]))), Request)
    assert isinstance(SERVER.decode_body(call(b"{%b}" % b",".join(members))), Malformed)


@pytest.mark.parametrize("text", [b'","', rb'"\","', rb'"\\","', rb'"\\\",","', b'"a[","b{"'])
def test_strings_are_recognized_across_chunks(text: bytes) -> None:
    values = count_values(text)
    for before in range(262_144 - len(text) - 1, 262_145):
        assert count_values(b" " * before + text) == values


def test_too_many_digits_of_large_integers_are_refused() -> None:
    def numbers(digits: bytes, count: int) -> bytes:
        return call(b'{"a":[%b]}' % b",".join([digits] * count))

    for digits, most in ((b"9" * 4_000, 62), (b"9" * 40, 6_000)):
        assert isinstance(SERVER.decode_body(numbers(digits, most)), Request)
        refused = SERVER.decode_body(numbers(digits, 2 * most + 500))
        assert isinstance(refused, Malformed)
        assert "250,000 digits of integers beyond 64 bits" in refused.failure.message


@pytest.mark.parametrize("number", [b"0.00012345678901234567", b"1234567890123456789", b'"%b"' % (b"9" * 40)])
def test_digits_of_other_numbers_and_strings_are_not_limited(number: bytes) -> None:
    assert isinstance(SERVER.decode_body(call(b'{"a":[%b]}' % b",".join([number] * 90_000))), Request)


def test_clients_accept_any_number_of_values() -> None:
    client, text = Codec(is_client=True, line_end=b""), call(b'{"a":[' + b",".join([b"1"] * MANY) + b"]}")
    assert isinstance(client.decode_body(text), Request)


@pytest.mark.parametrize("dialects", [False, True])
def test_large_requests_have_a_weight_in_bytes(dialects: bool) -> None:
    text = call(b'{"a":[' + b",".join([b"7"] * 50_000) + b"]}")
    request = Codec(line_end=b"", dialects=dialects).decode_body(text)
    assert isinstance(request, Request)
    assert request.weight == weigh(text, count_values(text)) > 5_000_000


def test_messages_of_a_batch_share_the_weight() -> None:
    text = b"[%b,%b]" % (call(b'{"a":"%b"}' % (b"x" * MAX_LIGHT_BYTES)), call(b"{}"))
    batch = SERVER.decode_body(text)
    share = weigh(text, count_values(text)) // 2
    assert [one.weight for one in batch.messages] == [share, share]  # type: ignore[union-attr]


def test_each_message_of_a_heavy_batch_has_its_own_weight() -> None:
    texts = call(b'{"a":"%b"}' % (b"x" * 400_000)), call(b'{"a":1}')
    batch = SERVER.decode_body(b"[%b,%b]" % texts)
    weights = [one.weight for one in batch.messages]  # type: ignore[union-attr]
    assert weights == [weigh(text, count_values(text)) for text in texts]


def test_small_requests_are_weighed_only_by_value() -> None:
    request = SERVER.decode_body(call(b'{"a":[1,2,3]}'))
    assert isinstance(request, Request)
    assert (request.weight, weigh_value(request.params)) == (0, weigh(json_of(request.params), 9))


def test_weight_does_not_affect_the_equality_of_messages() -> None:
    assert Request(1, "ping", weight=5) == Request(1, "ping")
    assert isinstance(SERVER.decode_body(b'{"jsonrpc":"2.0","method":"m"}'), Notification)


def test_the_weight_of_a_result_includes_all_its_parts():
    text = {"type": "text", "text": "a" * 100}
    assert weigh_result({"content": [text]}) == 100
    assert weigh_result({"content": [text], "structuredContent": {"a": "b" * 1_000}}) > 1_000
    assert weigh_result({"content": [text], "_meta": {"view": "b" * 1_000}}) > 1_000
    assert weigh_result({"contents": [{"uri": "a://b", "blob": "b" * 500}, text]}) == 600
    assert weigh_result({"content": ["plain"]}) > 0  # custom methods may have any result
    assert weigh_result({"content": [text], "_meta": 7}) > 100  # servers behind a gateway may answer this
