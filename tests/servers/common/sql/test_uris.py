"""The URIs of databases, tables and rows."""

from hypothesis import given, settings
from hypothesis import strategies as st

from servers.common.sql.uris import INSIGHTS_URI, Target, join_key, split_key
from servers.sqlite.dialect import SQLITE

names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)
keys = st.lists(names | st.just(""), min_size=1, max_size=3).map(join_key).filter(bool)


@settings(max_examples=50)
@given(names, st.none() | st.tuples(names, st.none() | keys))
def test_any_name_is_encoded_to_a_valid_uri_and_decoded_back(
    database: str, rest: tuple[str, str | None] | None
) -> None:
    named = Target(database, *(rest or ()))
    uri = SQLITE.uris.format(named)
    assert SQLITE.uris.parse(uri) == named
    assert uri.isascii()
    assert not set(uri) & set(" \"<>\\^`{|}#?'[]")


@settings(max_examples=30)
@given(st.lists(names, min_size=1))
def test_the_values_of_a_key_are_joined_and_split_back(parts: list[str]) -> None:
    assert split_key(join_key(parts)) == parts


@settings(max_examples=30)
@given(st.from_regex(r"[^/?#]+/[^/?#]+(/.+)?", fullmatch=True))
def test_any_parsed_uri_has_one_canonical_form(path: str) -> None:
    target = SQLITE.uris.parse(f"sqlite:///{path}")
    assert target is not None
    assert SQLITE.uris.parse(SQLITE.uris.format(target)) == target


def test_a_table_named_schema_is_not_the_schema() -> None:
    assert SQLITE.uris.parse("sqlite:///data/schema") == Target("data")
    assert SQLITE.uris.parse(SQLITE.uris.format(Target("data", "schema"))) == Target("data", "schema")


def test_equivalent_uris_have_one_canonical_form() -> None:
    assert SQLITE.uris.parse("sqlite:///data/t/a/b,c%20d") == SQLITE.uris.parse("sqlite:///data/%74/a%2Fb,c d")
    assert SQLITE.uris.format(Target("data", "a/b", "1,2")) == "sqlite:///data/a%2Fb/1,2"


def test_other_uris_are_not_parsed() -> None:
    others = [INSIGHTS_URI, "sqlite:///", "sqlite:///data", "sqlite://data/t", "file:///data/t", ""]
    assert [uri for uri in others if SQLITE.uris.parse(uri) is not None] == []
