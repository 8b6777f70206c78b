"""Names in SQL and for readers."""

import pytest

from servers.common.sql.texts import asks_for_schema, find_nearest, format_name, shorten


def test_names_are_shown_plain_or_in_quotes() -> None:
    assert [format_name(name) for name in ("a_1", "größe", "1a", 'a"b', "a\nb", "")] == [
        "a_1",
        "größe",
        '"1a"',
        '"a\\"b"',
        '"a\\nb"',
        '""',
    ]


def test_the_nearest_names_are_found_in_upper_and_lower_case() -> None:
    assert find_nearest("ordres", ["Orders", "customers", "x" * 1_000]) == ["Orders"]


def test_a_text_is_cut_and_says_how_long_it_was() -> None:
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
def test_a_command_for_the_schema_is_known(statement: str, asks: bool) -> None:
    assert asks_for_schema(statement) == asks
