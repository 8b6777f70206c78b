"""The charset of a file: how it is found, and that no byte is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.filesystem.errors import FilesError
from servers.filesystem.read.charsets import UTF8, Charset, charset_of, decode, encode

POLISH = "Zażółć gęślą jaźń, proszę państwa.\n"
RUSSIAN = "Привет, как дела? Сегодня хорошая погода.\n"
JAPANESE = "これは日本語のテキストです。文字コードを調べます。\n"


def refusal(data, offset=0):
    with pytest.raises(FilesError) as caught:
        decode(data, "file", offset)
    assert caught.value.code == "not_text"
    return caught.value.reason


def test_utf_8_comes_first():
    for text in ("", "abc", "één\n", "😀", "日本語"):
        assert decode(text.encode(), "file") == (text, UTF8)


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_names_the_charset_and_is_kept_apart(codec):
    data = "één\n".encode(codec)
    text, charset = decode(data, "file")
    assert text == "één\n"
    assert charset.mark
    assert encode("één\n", charset, "file") == data


def test_f23_utf_16_without_a_mark_is_recognised_by_its_nuls():
    for codec in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        assert decode("Hello,\nworld".encode(codec), "file") == ("Hello,\nworld", Charset(codec))


def test_other_charsets_are_recognised():
    western = "The café is in Señor Müller’s house.\n"
    for text, codec in (
        *((western, "cp1252"), (POLISH, "cp1250"), (RUSSIAN, "cp1251")),
        *((RUSSIAN, "koi8-r"), (JAPANESE, "cp932"), (JAPANESE, "euc_jp")),
    ):
        assert decode(text.encode(codec) * 2, "file") == (text * 2, Charset(codec))


def test_f1_bytes_of_latin_1_come_back_as_they_were():
    for data in (b"\xe9", b"caf\xe9 \xf1", b"caf\xe9 \xf1\n", b"# \xf1\nx = '\xe9'\n" * 9_000):
        text, charset = decode(data, "file")
        assert text == data.decode("latin-1")
        assert encode(text, charset, "file") == data


NO_TEXTS = [
    *[(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 8), (b"ab\0c", 2), (b"\xef\xbb\xbfx\xff", 4), (b"\xff\xfea\0x", 4)],
    *[("naïve ".encode() + b"caf\xe9 ", 10), (b"\xff\x01", 0)],
]


def test_what_is_no_text_names_the_byte():
    for data, byte in NO_TEXTS:
        assert refusal(data) == f"is not text (byte {byte})"
        if byte <= 3:
            assert refusal(data, 1_000) == f"is not text (byte {1_000 + byte})"


def test_a_part_may_end_within_a_character_and_a_mark_counts_only_at_the_start_of_the_file():
    assert charset_of("één".encode()[:1], "file") == UTF8
    assert charset_of(JAPANESE.encode("cp932") * 2_000, "file") == Charset("cp932")
    assert charset_of("\ufeffa".encode(), "file", offset=10) == UTF8


def test_a_new_text_that_the_charset_can_not_hold_is_refused():
    assert refusal("a\0b".encode("utf-16"))
    for text, charset, reason in (
        ("café 中", Charset("cp1252"), "the file is cp1252, which has no '中'"),
        ("\ud800", UTF8, "no Unicode"),
    ):
        with pytest.raises(FilesError, match=reason) as caught:
            encode(text, charset, "file")
        assert caught.value.code == "bad_edit"


@given(st.binary(max_size=60) | st.text("aé ñ\n—", max_size=40).map(lambda text: text.encode("cp1252")))
def test_no_byte_is_ever_lost(data):
    try:
        text, charset = decode(data, "file")
    except FilesError:
        return
    assert encode(text, charset, "file") == data
