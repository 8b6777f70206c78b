"""Values as JSON, sent to a real server and back as parameters."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from servers.common.sql.errors import SqlError
from servers.postgres.arrays import format_array, parse_array
from servers.postgres.catalog import Types
from servers.postgres.values import Codec, Type, encode_column, encode_parameter, encode_rows
from tests.postgres_server import PostgresServer
from tests.servers.postgres.asking import asking
from tests.servers.postgres.databases import Database, copy_sample

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
INT8 = st.integers(-(2**63), 2**63 - 1)
NUMERIC = st.decimals(allow_nan=False, allow_infinity=False, places=6) | st.sampled_from(["NaN", "Infinity", "1e-30"])
FLOATS = st.floats().map(repr)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "bigint": INT8 | st.integers(2**53 - 2, 2**53 + 2),
    "real": st.floats(width=32).map(repr),
    "double precision": FLOATS,
    "numeric": NUMERIC | st.integers(),
    "text": TEXT,
    "bytea": st.binary(max_size=40).map(lambda raw: "\\x" + raw.hex()),
    "jsonb": st.recursive(st.none() | st.booleans() | st.integers() | TEXT, st.lists).map(json.dumps),
    "date": st.dates(),
    "timestamp with time zone": st.datetimes(),
    "interval": st.timedeltas().map(lambda one: f"{one.days} days {one.seconds} seconds {one.microseconds} us"),
    "uuid": st.uuids(),
    "integer[]": st.lists(st.none() | st.integers(-(2**31), 2**31 - 1)),
    "bigint[]": st.lists(INT8),
    "text[]": st.lists(st.none() | TEXT | st.just("NULL")),
    "text[][]": st.integers(1, 3).flatmap(
        lambda width: st.lists(st.lists(TEXT, min_size=width, max_size=width), min_size=1)
    ),
    "bytea[]": st.lists(st.binary(max_size=5).map(lambda raw: "\\x" + raw.hex())),
    "float8[]": st.lists(FLOATS),
    "numeric[]": st.lists(NUMERIC.map(str)),
    "boolean[]": st.lists(st.booleans()),
    "int4range[]": st.lists(st.integers(0, 9).map(lambda low: f"[{low},{low + 5})")),
}


class Sender:
    """Sends parameters to a server as text, and returns its values as text."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._pgconn = connection.pgconn

    def fetch(self, sql: str, *parameters: bytes | None) -> tuple[list[int], list[tuple[bytes | None, ...]]]:
        result = self._pgconn.exec_params(sql.encode(), parameters)
        assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
        columns = range(result.nfields)
        return [result.ftype(column) for column in columns], [
            tuple(result.get_value(row, column) for column in columns) for row in range(result.ntuples)
        ]


COPY = "sample_of_values"
"""A copy, because the sample must have no open connections while it is copied."""


@pytest.fixture(scope="module")
def sender(postgres: PostgresServer) -> Iterator[Sender]:
    with postgres.connect(copy_sample(postgres, COPY).name) as connection:
        connection.execute("SET bytea_output = hex; SET intervalstyle = iso_8601; SET client_encoding = UTF8")
        yield Sender(connection)


@pytest.fixture(scope="module")
def types() -> Types:
    return Types()


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
def test_each_value_round_trips_as_a_parameter(
    name: str, sender: Sender, types: Types, postgres: PostgresServer
) -> None:
    array = name.endswith("[]")
    oids, _ = sender.fetch(f"SELECT NULL::{name}")
    ((kind,),) = [_read_types(types, oids, postgres)]

    @given(VALUES[name])
    @settings(max_examples=60)
    def check(value: Any) -> None:
        parameter = encode_parameter(value if array or isinstance(value, bool) else str(value))
        _, ((cell,),) = sender.fetch(f"SELECT $1::{name}", parameter)
        (encoded,) = encode_column(kind, [cell], 10_000)
        again = encode_parameter(json.loads(to_json(encoded)))
        _, ((same, came),) = sender.fetch(
            f"SELECT $1::{name} IS NOT DISTINCT FROM $2::{name}, $2::{name}", cell, again
        )
        assert same == b"t"
        assert came == cell or "numeric" in name  # 1.50 is 1.5

    check()


def _read_types(types: Types, oids: list[int], postgres: PostgresServer) -> list[Type]:
    import asyncio

    async def read() -> list[Type]:
        async with asking(postgres.url(COPY)) as ask:
            return await types.read(oids, ask)

    return asyncio.run(read())


def test_values_of_every_type_become_json(sender: Sender, types: Types, postgres: PostgresServer) -> None:
    oids, rows = sender.fetch("TABLE value_of_each_type ORDER BY id")
    encoded = encode_rows(_read_types(types, oids, postgres), rows, 10_000)
    names = [name for (name,) in _columns(postgres)]
    first, second, third, fourth = (dict(zip(names, row, strict=True)) for row in encoded)
    assert first["big"] == {"type": "int8", "value": "9223372036854775807"}
    assert first["exact"] == {"type": "numeric", "value": "123456789012345678901234567890.123456789"}
    assert (first["fixed"], first["double"], first["yes"]) == (1.5, 0.1, True)
    assert first["bytes"] == {"type": "bytea", "bytes": 5, "base64": "3q2+7wA="}
    assert first["numbers"] == [1, None, 3]
    assert first["grid"] == [[1, 2], [3, 4]]
    assert first["words"] == ["a,b", 'c"d', ""]
    assert first["moods"] == ["sad", "happy"]
    assert first["addresses"] == ["(S,C,1)"]
    assert first["j"] == '{"a": 1,  "a": 2}'
    assert second["big"] == {"type": "int8", "value": "9007199254740993"}
    assert second["exact"] == {"type": "numeric", "value": "NaN"}
    assert second["double"] == {"type": "float8", "value": "-Infinity"}
    assert second["numbers"] == []
    assert third["exact"] == 1e-20
    assert third["bytes"] == {"type": "bytea", "bytes": 1, "base64": "AA=="}
    assert set(fourth.values()) == {4, None}


def _columns(postgres: PostgresServer) -> list[tuple[Any, ...]]:
    question = """
        SELECT attname FROM pg_attribute WHERE attrelid = 'value_of_each_type'::regclass AND attnum > 0
        ORDER BY attnum"""
    return postgres.run(question, dbname=COPY)


def test_arrays_of_domains_have_their_base_type(sender: Sender, types: Types, postgres: PostgresServer) -> None:
    oids, rows = sender.fetch("SELECT ARRAY[1, 2]::positive[], ARRAY['a@b']::email[], 7::positive")
    result_types = _read_types(types, oids, postgres)
    assert [one.name for one in result_types] == ["positive[]", "email[]", "integer"]
    assert encode_rows(result_types, rows, 1_000) == [([1, 2], ["a@b"], 7)]


ODD: list[tuple[str, Any]] = [
    ("'[0:1]={1,2}'::integer[]", "[0:1]={1,2}"),
    ("'{(1,1),(0,0);(2,2),(1,1)}'::box[]", "{(1,1),(0,0);(2,2),(1,1)}"),
    ("'1 2'::int2vector", "1 2"),
    ("'{{1},{NULL}}'::bigint[]", [[1], [None]]),
    ("'Infinity'::float8", {"type": "float8", "value": "Infinity"}),
    ("'infinity'::timestamptz", "infinity"),
    ("'😀'::text", "😀"),
    ("9007199254740992::bigint", 2**53),
    ("1e22::numeric", 1e22),
    ("1::numeric", 1),
    ("9007199254740993::numeric", {"type": "numeric", "value": "9007199254740993"}),
    ("0.1::numeric", 0.1),
    ("0.00::numeric", 0.0),
    ("1e-400::numeric", {"type": "numeric", "value": f"0.{'0' * 399}1"}),
    ("(-9007199254740992)::bigint", -9007199254740992),
]
LONG: list[tuple[Type, bytes, dict[str, Any]]] = [
    (Type("text"), "äää".encode(), {"type": "text", "bytes": 6, "value": "ä"}),
    (
        Type("integer[]", "array", Type("integer", "int4")),
        b"{1,2}",
        {"type": "integer[]", "bytes": 5, "value": "{1,"},
    ),
    (Type("bytea", "bytea"), b"\\x00112233", {"type": "bytea", "bytes": 4, "base64": "ABEi"}),
    (Type("numeric", "numeric"), b"1.2345678901234567", {"type": "numeric", "bytes": 18, "value": "1.2"}),
    (Type("text"), b"a\xff\xfe\xfd", {"type": "text", "bytes": 4, "base64": "Yf/+"}),
]
SENT: list[tuple[Any, bytes | None]] = [
    (None, None),
    (True, b"true"),
    (1.0, b"1"),
    (1.5, b"1.5"),
    ({"a": [1, None]}, b'{"a":[1,null]}'),
    ({"type": "note", "value": "x"}, b'{"type":"note","value":"x"}'),
    ({"type": "image", "base64": "AA=="}, b'{"type":"image","base64":"AA=="}'),
    ([{"type": "bytea", "base64": "AA=="}], b'{"\\\\x00"}'),
    ([{"a": 'b"'}, None, ["x"]], b'{"{\\"a\\":\\"b\\\\\\"\\"}",NULL,{"x"}}'),
    ([], b"{}"),
]


def test_special_values_keep_their_meaning(sender: Sender, types: Types, postgres: PostgresServer) -> None:
    oids, rows = sender.fetch(f"SELECT {', '.join(expression for expression, _ in ODD)}")
    (encoded,) = encode_rows(_read_types(types, oids, postgres), rows, 1_000)
    assert list(encoded) == [expected for _, expected in ODD]
    assert [type(one) for one in encoded] == [type(expected) for _, expected in ODD]


def test_a_long_value_is_cut_and_refused_as_a_parameter() -> None:
    for kind, raw, shown in LONG:
        (encoded,) = encode_column(kind, [raw], 3)
        assert encoded == {**shown, "truncated": True}
        with pytest.raises(SqlError, match="a truncated value"):
            encode_parameter(encoded)


def test_text_outside_utf8_round_trips_as_bytes() -> None:
    (encoded,) = encode_column(Type("text"), [b"a\xff"], 100)
    assert encoded == {"type": "text", "bytes": 2, "base64": "Yf8="}
    assert encode_parameter(encoded) == b"a\xff"


def test_a_parameter_is_encoded_as_text() -> None:
    assert [(value, encode_parameter(value)) for value, _ in SENT] == SENT
    bad = [{"type": "bytea", "base64": text} for text in ("?", "A")]
    for value in ("a\0b", "\ud800", ["\ud800"], 10**5000, *bad):
        with pytest.raises(SqlError) as caught:
            encode_parameter(value)
        assert caught.value.code == "bad_parameters"


def test_rows_without_columns_are_counted() -> None:
    assert encode_rows([], [(), ()], 100) == [(), ()]
    assert Codec([Type("text")]).encode([], 100) == []


def test_format_writes_values_as_copy_does() -> None:
    codec = Codec([Type("bytea", "bytea"), Type("text"), Type("bigint", "int8")])
    assert list(codec.format([(b"\\x00", None, b"1")])) == [["\\x00", None, "1"]]


async def test_a_dropped_type_is_read_as_text(sample: Database) -> None:
    async with asking(sample.reader) as ask:
        assert await Types().read([4_000_000_000], ask) == [Type("???")]


async def test_known_types_are_queried_once(sample: Database) -> None:
    asked: list[str] = []
    async with asking(sample.reader) as ask:

        async def count(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
            asked.append(sql)
            return await ask(sql, *parameters)

        ((oid,),) = sample.run("SELECT typarray FROM pg_type WHERE typname = 'mood'")
        types = Types()
        for _ in range(3):
            assert [one.kind for one in await types.read([23, oid, 25], count)] == ["int4", "array", "text"]
    assert len(asked) == 2


@settings(max_examples=50)
@given(
    st.recursive(st.none() | TEXT, lambda inner: st.lists(inner, min_size=1), max_leaves=20).filter(
        lambda one: isinstance(one, list)
    )
)
def test_arrays_round_trip(values: list[Any]) -> None:
    assert parse_array(format_array(values, str)) == values
