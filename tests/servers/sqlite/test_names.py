"""Names in SQL and for readers."""

from servers.sqlite.texts import nearest, short, shown


def test_names_are_shown_plain_or_in_quotes() -> None:
    assert [shown(name) for name in ("a_1", "größe", "1a", 'a"b', "a\nb", "")] == [
        "a_1",
        "größe",
        '"1a"',
        '"a\\"b"',
        '"a\\nb"',
        '""',
    ]


def test_the_nearest_names_are_found_in_upper_and_lower_case() -> None:
    assert nearest("ordres", ["Orders", "customers", "x" * 1_000]) == ["Orders"]


def test_a_text_is_cut_and_says_how_long_it_was() -> None:
    assert (short("abc", 3), short("abcd", 3)) == ("abc", "abc … (4 characters)")
