"""Names in SQL and for readers."""

from servers.common.sql.texts import find_nearest, format_name, shorten


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
