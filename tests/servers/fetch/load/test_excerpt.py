"""Excerpts of HTTP error bodies."""

import pytest

from servers.fetch.load.excerpt import excerpt


def test_an_excerpt_omits_tags_scripts_styles_and_comments() -> None:
    rows = {
        b"<p>a<br/>b</p>": "a b",
        b"<style>x</style><script>if (a<b) {}</script>c": "c",
        b"<SCRIPT src=a>x</Script >c": "c",
        b"<!-- a <b> -->c": "c",
        b"<!doctype html><title>a</title>\n\n&lt;b&gt;": "a <b>",
        b"<svg/>a": "a",
        b"<p>1 < 2 and 3 > 2": "1 < 2 and 3 > 2",
    }
    assert {body: excerpt(body, "text/html", None) for body in rows} == rows


def test_an_excerpt_has_at_most_500_characters() -> None:
    assert len(excerpt(b"word " * 1_000, "text/plain", None)) == 500


def test_an_excerpt_is_decoded_by_its_charset_or_as_utf_8() -> None:
    assert excerpt("ä".encode("latin-1"), "text/plain", "latin-1") == "ä"
    assert excerpt("ä".encode(), "text/plain", "no-such-charset") == "ä"
    assert excerpt(b"a-1ga", "text/plain", "punycode") == "a-1ga"
    assert excerpt(b"4142", "text/plain", "hex") == "4142"


def test_an_excerpt_omits_terminal_control_characters() -> None:
    assert excerpt("a\x1b[31mb\u202ec".encode(), "text/plain", None) == "a [31mb c"


def test_binary_media_types_have_no_excerpt() -> None:
    kinds = ("image/png", "application/octet-stream", "application/pdf")
    assert [excerpt(b"text", media_type, None) for media_type in kinds] == [""] * 3


def test_an_excerpt_of_json_keeps_its_tags() -> None:
    assert excerpt(b'{"error": "<none>"}', "application/problem+json", None) == '{"error": "<none>"}'


@pytest.mark.timeout(10)
def test_unclosed_markup_takes_linear_time() -> None:
    for piece in (b"<", b"<script>", b"<!--", b"<a ", b"</", b"&", b"<!", b"<a<b>"):
        assert len(excerpt(piece * (65_536 // len(piece)), "text/html", None)) <= 500


def test_a_codec_outside_the_encoding_standard_is_not_used() -> None:
    for charset in ("unicode_escape", "utf-7", "zlib", "undefined", "idna", "\0", "x" * 60_000):
        assert excerpt(b"+AGE- \\x41", "text/plain", charset) == "+AGE- \\x41"
