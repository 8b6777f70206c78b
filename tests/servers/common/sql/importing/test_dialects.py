"""Detection of delimiters and quotes."""

import pytest

from servers.common.sql.importing.dialects import NO_DELIMITER, Dialect, sniff

SEEN = [
    ("a,b\n1,2\n", Dialect()),
    ("a;b\n1,5;2,5\n", Dialect(";")),
    ("a\tb\nRome, Italy\t1\nParis, France\t2\n", Dialect("\t")),
    ("a|b\n1|2\n", Dialect("|")),
    ("a,b\n1;2,3\n4;5,6\n", Dialect()),
    ("a, b\n1, 2\n", Dialect(skips_spaces=True)),
    ('a, b\n"x", "y, z"\n', Dialect(skips_spaces=True)),
    ("a   b  c\n1   2  3\n10 20 30\n", Dialect(" ", skips_spaces=True)),
    ("'a','b'\n'x, y','2'\n", Dialect(quote="'")),
    ('a,b\n"say \\"hi\\", please",2\n', Dialect(escape="\\")),
    ('a\tb\n"5 inch\t1\n"6 inch\t2\n7\t3\n', Dialect("\t", quote="")),
    ("a^b\nx, y^1\nz^2\n", Dialect("^")),
    ("a~b\nx, y~1\nz~2\n", Dialect("~")),
    ("x, y\x011\nz\x012\n", Dialect("\x01")),
    ("~1~^~a, salted~^1.5\n~2~^~b, raw, cut~^2.5\n~3~^~c~^3.5\n", Dialect("^", quote="~")),
    ("a,b\n~1,5 ^ 2\n~2,6 ^ 3,\n", Dialect()),
    ("name\nAnn Lee\nBob Ray\n", Dialect(NO_DELIMITER)),
    ("text\nWell, well\nno\nso, so, so\n", Dialect(NO_DELIMITER)),
    ("price\n1,5\n2,75\n-3,0\n", Dialect(NO_DELIMITER)),
    ("Report\na,b\n1,5\n2,6\n3,7\n", Dialect()),
    ('a,b\n"two\nlines, one field",2\n', Dialect()),
]


@pytest.mark.parametrize(("text", "dialect"), SEEN)
def test_the_dialect_is_detected_from_the_text(text: str, dialect: Dialect) -> None:
    assert sniff(text, is_complete=True, delimiter=None, quote=None) == dialect


def test_a_given_delimiter_and_quote_are_used() -> None:
    assert sniff("a,b;c\n1,2;3\n", is_complete=True, delimiter=";", quote="") == Dialect(";", quote="")


def test_the_dialect_is_detected_from_a_text_cut_within_a_field() -> None:
    assert sniff('a;b\n1;"x"\n2;"y', is_complete=False, delimiter=None, quote=None) == Dialect(";")
