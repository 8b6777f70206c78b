from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.fetch.read.kinds import find_kind
from servers.fetch.read.text import decode

RUSSIAN = "Быстрая коричневая лиса прыгает через ленивую собаку. Это обычный русский текст о погоде и людях."
JAPANESE = "これは日本語のテキストです。天気がよいので、散歩に出かけました。①"
META = '<html><head><meta charset="{}"></head><body>{}</body></html>'
EQUIV = '<html><head><META content="text/html; charset={}" HTTP-EQUIV="Content-Type"></head><body>{}</body></html>'


def html(body: bytes, declared: str | None = None) -> tuple[str, str]:
    return decode(body, declared, "text/html")


def test_the_content_type_names_the_charset():
    for codec, declared, name in [
        ("utf-8", "UTF-8", "utf-8"),
        ("cp1251", "windows-1251", "windows-1251"),
        ("koi8-r", " KOI8-R ", "koi8-r"),
        ("utf-16-le", "utf-16", "utf-16le"),
        ("utf-16-be", "UTF-16BE", "utf-16be"),
        ("cp866", "ibm866", "ibm866"),
        ("gb18030", "gb2312", "gbk"),
    ]:
        assert decode(RUSSIAN.encode(codec), declared, "text/plain") == (RUSSIAN, name)


def test_a_meta_element_names_the_charset():
    for page in (META, EQUIV, "<!-- <meta charset=utf-8> -->" + META):
        text = page.format("Shift_JIS", JAPANESE)
        assert html(text.encode("cp932")) == (text, "shift_jis")


def test_the_xml_declaration_names_the_charset():
    text = f'<?xml version="1.0" encoding="koi8-r"?><feed>{RUSSIAN}</feed>'
    assert decode(text.encode("koi8-r"), None, "application/xml") == (text, "koi8-r")


def test_the_header_overrides_the_page():
    text = META.format("koi8-r", RUSSIAN)
    assert html(text.encode("cp1251"), "windows-1251") == (text, "windows-1251")


def test_a_byte_order_mark_overrides_header_and_page():
    text = META.format("koi8-r", RUSSIAN)
    assert html(b"\xef\xbb\xbf" + text.encode(), "windows-1251") == (text, "utf-8")
    assert html(b"\xff\xfe" + text.encode("utf-16-le"), "windows-1251") == (text, "utf-16le")
    assert html(b"\xfe\xff" + text.encode("utf-16-be"), "windows-1251") == (text, "utf-16be")


def test_utf16_without_a_byte_order_mark_is_detected():
    text = META.format("utf-8", "Grüße")
    for codec, declared in product(("utf-16-le", "utf-16-be"), (None, "utf-8", "iso-8859-1")):
        assert html(text.encode(codec), declared) == (text, codec.replace("16-", "16"))


def test_a_charset_in_a_description_is_ignored():
    text = f'<meta name="description" content="all about charset=utf-16"><meta charset="koi8-r">{RUSSIAN}'
    assert html(text.encode("koi8-r")) == (text, "koi8-r")


def test_valid_utf8_overrides_the_header():
    for declared in ("iso-8859-1", "us-ascii", "windows-1251", "koi8-r"):
        assert html(RUSSIAN.encode(), declared) == (RUSSIAN, "utf-8")


def test_latin1_means_windows_1252():
    assert html(b"\x93quoted\x94 \x80 5 caf\xe9", "iso-8859-1") == ("“quoted” € 5 café", "windows-1252")


def test_invalid_utf8_is_detected_despite_its_declaration():
    text = META.format("utf-8", RUSSIAN)
    assert html(text.encode("cp1251"), "utf-8") == (text, "windows-1251")


@pytest.mark.parametrize("page_declares", ["iso-8859-2", "ISO-8859-2 ", "shift_jis"])
def test_a_wrong_utf8_in_the_content_type_yields_to_the_declaration_of_the_page(page_declares: str) -> None:
    text = META.format(page_declares, "<h1>Zażółć gęślą jaźń</h1>")
    decoded, name = html(text.encode("iso-8859-2"), "utf-8")
    assert (decoded == text, name == "iso-8859-2") == (page_declares != "shift_jis",) * 2


def test_a_damaged_byte_in_utf8_becomes_a_replacement_character():
    text, name = html("Größe и погода".encode() + b"\xff", "utf-8")
    assert (text, name) == ("Größe и погода\ufffd", "utf-8")


def test_utf8_overrides_a_wrong_multibyte_charset():
    assert html("größer, schöner".encode(), "euc-jp") == ("größer, schöner", "utf-8")


def test_an_unknown_charset_name_is_ignored():
    for label in ("utf-7", "zlib", "unicode_escape", "punycode", "no-such", "ü", "x" * 1_000):
        assert html(b"+ADw-b+AD4- \\u0041", label) == ("+ADw-b+AD4- \\u0041", "utf-8")


def test_x_user_defined_follows_the_encoding_standard():
    assert html(b"A\x80\xff", "x-user-defined") == ("A\uf780\uf7ff", "x-user-defined")
    page = META.format("x-user-defined", "").encode() + b"\xe9"
    assert html(page)[1] == "windows-1252"


def test_an_undeclared_charset_is_detected():
    for text, codec in [
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (JAPANESE, "cp932"),
        (JAPANESE[:-1], "euc-jp"),
        ("這是一個中文網頁,內容是關於天氣和人們的生活。我們今天去公園散步。", "big5"),
        ("이것은 한국어 텍스트입니다. 오늘은 날씨가 좋아서 산책을 나갔습니다.", "cp949"),
        ("Die schöne Straße führt über die Brücke nach Köln – „gewiß“.", "cp1252"),
    ]:
        assert decode(text.encode(codec), None, "text/plain")[0] == text, codec


def test_scripts_do_not_affect_charset_detection():
    text = "<script>" + "ab = cd;\n" * 5_000 + f"</script><p class='x'>{RUSSIAN}</p>"
    assert html(text.encode("cp1251")) == (text, "windows-1251")


def test_an_empty_body_is_an_empty_text():
    assert html(b"") == ("", "utf-8")


TYPES = st.sampled_from(["", "text/html", "text/plain", "application/xml", "application/octet-stream"])
STARTS = st.sampled_from(
    [b"", b"\xef\xbb\xbf", b"\xff\xfe", b"<?xml encoding='gbk'?>", b"<meta charset=utf-16>", b"%PDF-"]
)


@pytest.mark.slow
@given(STARTS, st.binary(max_size=200), st.none() | st.text(max_size=20) | st.just("shift_jis"), TYPES)
def test_any_bytes_have_a_kind_and_a_text(start: bytes, rest: bytes, declared: str | None, media_type: str):
    assert find_kind(media_type, start + rest).name
    text, name = decode(start + rest, declared, media_type)
    assert isinstance(text, str)
    assert name
