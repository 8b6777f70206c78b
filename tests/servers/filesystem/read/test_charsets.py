"""Detection of the charset of a file, and lossless decoding."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from servers.filesystem.errors import FilesError
from servers.filesystem.read.charsets import (
    UTF8,
    Charset,
    charset_by_name,
    charset_of,
    decode,
    encode,
    require_exact,
    require_sure,
)

POLISH = "Zażółć gęślą jaźń, proszę państwa.\n"
RUSSIAN = "Привет, как дела? Сегодня хорошая погода.\n"
JAPANESE = "これは日本語のテキストです。文字コードを調べます。\n"


def refusal(data, offset=0):
    with pytest.raises(FilesError) as caught:
        decode(data, "file", offset)
    assert caught.value.code == "not_text"
    return caught.value.reason


def test_utf_8_is_preferred():
    for text in ("", "abc", "één\n", "😀", "日本語"):
        assert decode(text.encode(), "file") == (text, UTF8)


@pytest.mark.parametrize(
    "text",
    [
        *("café\n", "café ñ", "# ñ\nx = 'é'\n", "20 °C", "price 5€\n", "¿Qué?", "½ l", "été"),
        *("Le café est fermé à midi.\nIl n’y a personne\n", "ação não é\n", "Größe\n", "naïve “quotes” – dash\n"),
        *("Hyvää päivää\nTämä on pitkä rivi\n" * 3, "tämä\n" * 30),
    ],
)
def test_a_short_text_without_evidence_is_cp1252(text):
    assert decode(text.encode("cp1252"), "file") == (text, Charset("cp1252"))


def test_other_scripts_are_detected_from_few_words():
    texts = {
        "cp1251": "Привет, как дела?",
        "cp1253": "Καλημέρα, τι κάνεις;",
        "cp932": "これは日本語です",
        "cp1250": POLISH,
    }
    assert {codec: decode(text.encode(codec), "file")[0] for codec, text in texts.items()} == texts


def test_a_given_encoding_is_used_with_the_existing_byte_order_mark():
    for encoding, data, charset in (
        ("cp1250", "żaba".encode("cp1250"), Charset("cp1250", b"", True)),
        ("Windows-1250", "żaba".encode("cp1250"), Charset("cp1250", b"", True)),
        ("utf-16", "żaba".encode("utf-16-le"), Charset("utf-16-le", b"", True)),
        ("UTF_16", "żaba".encode("utf-16"), Charset("utf-16-le", b"\xff\xfe", True)),
        ("utf-8", "żaba".encode("utf-8-sig"), Charset("utf-8", b"\xef\xbb\xbf", True)),
        ("utf-8-sig", "żaba".encode(), Charset("utf-8", b"", True)),
    ):
        assert decode(data, "file", encoding=encoding) == ("żaba", charset)


def test_bytes_invalid_in_the_given_encoding_are_refused():
    for encoding, data, reason in (
        ("utf-8", b"caf\xe9", "is not utf-8 (byte 3)"),
        ("cp932", b"a\x81", "is not cp932 (byte 1)"),
        ("ascii", b"\xe9", "is not ascii (byte 0)"),
    ):
        with pytest.raises(FilesError) as caught:
            decode(data, "file", encoding=encoding)
        assert (caught.value.code, caught.value.reason) == ("not_text", reason)
        assert caught.value.suggestion == "Omit encoding."


@pytest.mark.parametrize(
    "encoding", ["", "none", "cp037", "utf-7", "hz", "iso2022_jp", "rot13", "base64", "idna", "a\0", "unicode_escape"]
)
def test_unknown_encodings_are_refused(encoding):
    with pytest.raises(FilesError, match=r"the charset .* is unknown") as caught:
        charset_by_name(encoding, "file")
    assert caught.value.code == "bad_encoding"


UNSURE = [
    ("cp1252", "café", "5 €"),  # 0x80 in cp1252, 0xA4 in iso8859-15
    ("cp1251", "привет", "Я"),  # not the same in mac-cyrillic
]
SURE = [
    ("cp1252", "café – “5 €”", "7 €"),  # seen there
    ("cp1252", "café fermé – “l’été à côté, là-bas” où", "7 €"),  # only its siblings have the dash, and the same euro
    ("cp1252", "café", "plain"),
    ("cp1251", "Привет, как дела? Это хорошая погода.", "Пока"),
]


@pytest.mark.parametrize(("codec", "text", "new"), UNSURE)
def test_text_that_likely_charsets_encode_differently_is_refused(codec, text, new):
    data = text.encode(codec)
    assert decode(data, "file") == (text, Charset(codec))
    with pytest.raises(FilesError, match="which have different bytes for") as caught:
        require_sure(Charset(codec), new, data, text, "file")
    assert caught.value.code == "unsure_charset"
    require_sure(Charset(codec, given=True), new, data, text, "file")


@pytest.mark.parametrize(("codec", "text", "new"), SURE)
def test_text_that_likely_charsets_encode_alike_is_accepted(codec, text, new):
    data = text.encode(codec)
    assert decode(data, "file") == (text, Charset(codec))
    require_sure(Charset(codec), new, data, text, "file")


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_determines_the_charset_and_is_kept(codec):
    data = "één\n".encode(codec)
    text, charset = decode(data, "file")
    assert text == "één\n"
    assert charset.mark
    assert encode("één\n", charset, "file") == data


def test_utf_16_without_a_byte_order_mark_is_detected_by_its_nuls():
    for codec in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        assert decode("Hello,\nworld".encode(codec), "file") == ("Hello,\nworld", Charset(codec))


def test_western_polish_russian_and_japanese_charsets_are_detected():
    western = "The café is in Señor Müller’s house.\n"
    for text, codec in (
        *((western, "cp1252"), (POLISH, "cp1250"), (RUSSIAN, "cp1251")),
        *((RUSSIAN, "koi8-r"), (JAPANESE, "cp932"), (JAPANESE, "euc_jp")),
    ):
        assert decode(text.encode(codec) * 2, "file") == (text * 2, Charset(codec))


def test_latin_1_bytes_are_encoded_back_unchanged():
    for data in (b"\xe9", b"caf\xe9 \xf1", b"caf\xe9 \xf1\n", b"# \xf1\nx = '\xe9'\n" * 9_000):
        text, charset = decode(data, "file")
        assert text == data.decode("latin-1")
        assert encode(text, charset, "file") == data


NO_TEXTS = [
    *[(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 8), (b"ab\0c", 2), (b"\xef\xbb\xbfx\xff", 4), (b"\xff\xfea\0x", 4)],
    *[("naïve ".encode() + b"caf\xe9 ", 10), (b"\xff\x01", 0), (bytes(range(256)) * 8, 0)],
]


def test_an_error_about_binary_data_names_the_byte():
    for data, byte in NO_TEXTS:
        assert refusal(data) == f"is not text (byte {byte})"
        if byte <= 3:
            assert refusal(data, 1_000) == f"is not text (byte {1_000 + byte})"


def test_binary_numbers_are_not_taken_for_utf_32():
    numbers = b"".join(number.to_bytes(4, "little") for number in range(0, 90_000, 700))
    assert refusal(b"\1\2\3\4" + numbers).startswith("is not text")


def test_bytes_valid_as_utf_8_by_chance_do_not_hide_cp866():
    text = "┬ыхтьср: Вот строка, в которой много русских букв, и ещё одна.\n"
    data = text.encode("cp866")
    assert decode(data, "file")[0] == text


def test_utf_16_of_other_scripts_is_detected_without_a_byte_order_mark():
    for text in (JAPANESE, RUSSIAN, "中文 文本\n", "a 😀\n", "1.10.0", "Überprüfung"):
        for codec in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
            assert decode(text.encode(codec), "file") == (text, Charset(codec))
    for number in range(33, 127):
        assert refusal(bytes([number, 0]) * 3)


def test_a_part_may_split_a_character_and_has_a_byte_order_mark_only_at_offset_0():
    assert charset_of("één".encode()[:1], "file") == UTF8
    assert charset_of(JAPANESE.encode("cp932") * 2_000, "file") == Charset("cp932")
    assert charset_of("\ufeffa".encode(), "file", offset=10) == UTF8


def test_text_the_charset_can_not_encode_is_refused():
    assert refusal("a\0b".encode("utf-16"))
    for text, charset, reason in (
        ("café 中", Charset("cp1252"), "the file is cp1252, which has no '中'"),
        ("\ud800", UTF8, "not Unicode"),
    ):
        with pytest.raises(FilesError, match=reason) as caught:
            encode(text, charset, "file")
        assert caught.value.code == "bad_edit"


@given(st.binary(max_size=60) | st.text("aé ñ\n—", max_size=40).map(lambda text: text.encode("cp1252")))
@example(b"A\x88\x9f\xfa@")  # cp932 has two codes for the last character
def test_decoding_and_encoding_lose_no_byte(data):
    try:
        text, charset = decode(data, "file")
    except FilesError:
        return
    if encode(text, charset, "file") != data:
        with pytest.raises(FilesError, match="two codes"):  # which each edit checks
            require_exact(text, charset, data, "file")
