"""Characters and attribute names of HTML that an XML tree can not contain."""

import pytest

from servers.fetch.read.html.page import read_html
from servers.fetch.read.page import Format

URL = "http://site.example/folder/page"


def markdown(html: str, format: Format = "markdown") -> str:
    return read_html(html, URL, format, None).text


def test_characters_invalid_in_xml_are_replaced_or_removed() -> None:
    for written, seen in [
        ("a\fb", "a b"),
        ("a&#12;b", "ab"),
        ("a&#1;&#x1b;&#x0000007f;b", "ab"),
        ("a&#x93;b&#148;", "a“b”"),
        ("a&#0;&#xd800;&#x110000;&#99999999999999999999;b", "a����b"),
        ("a&#xffff;&#xF0000;&#1048576b", "ab"),
        ("a&#65;&#x1F600;b", "aA😀b"),
    ]:
        assert markdown(f"<p>{written} ü<p>b") == f"{seen} ü\n\nb"


def test_text_after_the_end_of_the_body_is_kept() -> None:
    for between in (
        "</body></html>",
        "</body id=x></html/>",
        "</BODY >",
        "</html><html><head><title>B</title></head><body>",
        "</body><body>",
    ):
        page = f"<html><head><title>A</title></head><body><p>one{between}<p>two</p></body></html>"
        assert markdown(page, "text") == "one\n\ntwo", between


@pytest.mark.parametrize("attributes", ["{x}='ü\u202e'", "{{{}}}='ü\u202e'", "{a}b=1 a\"b='\u202e' :=ü"])
def test_attributes_with_template_placeholders_are_ignored(attributes: str) -> None:
    assert markdown(f"<p {attributes}>a <a {attributes} href='b'>b</a>") == "a [b](http://site.example/folder/b)"


def test_invisible_characters_of_the_base_are_removed_from_links() -> None:
    assert markdown("<base href='/ü\u202e/'><p><a href='b'>b</a>") == "[b](http://site.example/ü/b)"
