"""Displayed names, nearest names, and shortened texts."""

import pytest

from servers.common.sql.texts import asks_for_schema, find_nearest, format_name, shorten


def test_names_are_displayed_plain_or_quoted() -> None:
    assert [format_name(name) for name in ("a_1", "größe", "1a", 'a"b', "a\nb", "")] == [
        "a_1",
        "größe",
        '"1a"',
        '"a\\"b"',
        '"a\\nb"',
        '""',
    ]


def test_the_nearest_names_are_found_in_any_case() -> None:
    assert find_nearest("ordres", ["Orders", "customers", "x" * 1_000]) == ["Orders"]


def test_a_shortened_text_has_its_original_length() -> None:
    assert (shorten("abc", 3), shorten("abcd", 3)) == ("abc", "abc … (4 characters)")


@pytest.mark.parametrize(
    ("statement", "asks"),
    [
        ("show tables", True),
        (" SHOW FULL COLUMNS FROM t", True),
        ("SHOW CREATE TABLE t", True),
        ("describe t", True),
        ("DESC t;", True),
        ("\\d t", True),
        ("\\dt", True),
        (".tables", True),
        (".schema t", True),
        ("SHOW server_version", False),
        ("SHOW tables_per_node", False),
        ("SELECT 1", False),
        ("description", False),
        ("", False),
    ],
)
def test_statements_that_ask_for_the_schema_are_recognized(statement: str, asks: bool) -> None:
    assert asks_for_schema(statement) == asks
