import pytest

from servers.common.documents.document import DocumentError
from servers.common.documents.epub import read_epub
from tests.servers.common.documents.archives import book


def test_chapters_are_in_reading_order():
    document = read_epub(book({"b.xhtml": "<h1>One</h1>", "a.xhtml": "<h1>Two</h1>"}))
    assert document.html == "<section><h1>One</h1></section><section><h1>Two</h1></section>"
    assert document.counts == {"chapters": 2}


def test_the_metadata_of_a_book_is_read():
    metadata = "<dc:title>Bread</dc:title><dc:creator>Ann</dc:creator><dc:language>en</dc:language>"
    facts = read_epub(book({"a.xhtml": "<p>x</p>"}, metadata)).facts
    assert (facts.title, facts.author, facts.language) == ("Bread", "Ann", "en")


def test_links_between_chapters_become_links_within_the_text():
    first = '<p><a href="b.xhtml#x">on</a> <a href="b.xhtml">b</a> <a href="https://example.org/">out</a></p>'
    html = read_epub(book({"a.xhtml": first, "b.xhtml": '<p id="x">here</p>'})).html
    assert '<a href="#c2-x">on</a> <a>b</a> <a href="https://example.org/">out</a>' in html
    assert '<p id="c2-x">here</p>' in html


def test_pictures_become_their_descriptions_and_entities_are_decoded():
    html = read_epub(book({"a.xhtml": '<p>A&nbsp;b &amp; &lt;c <img src="x.png" alt="A map"/></p>'})).html
    assert html == "<section><p>A\xa0b &amp; &lt;c <em>Picture: A map</em></p></section>"


def test_a_chapter_with_invalid_markup_is_read():
    assert "after" in read_epub(book({"a.xhtml": "<p>before<br>after</p>"})).html


def test_missing_chapters_are_counted():
    file = book({"a.xhtml": "<p>x</p>", "b.xhtml": "<p>y</p>"}).replace(b"OEBPS/b.xhtml", b"OEBPS/c.xhtml")
    document = read_epub(file)
    assert document.html == "<section><p>x</p></section>"
    assert document.notes == ("Left out: 1 chapters that are missing from the file.",)


def test_an_encrypted_book_is_refused():
    reference = '<CipherReference xmlns="http://www.w3.org/2001/04/xmlenc#" URI="OEBPS/a.xhtml"/>'
    with pytest.raises(DocumentError, match="the book is encrypted") as caught:
        read_epub(book({"a.xhtml": "<p>x</p>"}, **{"META-INF/encryption.xml": f"<e>{reference}</e>"}))
    assert caught.value.code == "unreadable"
