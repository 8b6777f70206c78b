import json

import pytest

from servers.common.documents.kinds import DocumentKind
from servers.fetch.errors import FetchError
from servers.fetch.read.document_page import page_reader
from servers.fetch.read.page import Format, Page
from tests.servers.common.documents.archives import WORD_NAMES, book, opened, shape, slides, word
from tests.servers.common.documents.test_sheets import one_sheet, written
from tests.servers.common.documents.test_word import STYLES, paragraph, run, table
from tests.servers.fetch.bodies import source

REPORT = word(
    paragraph(run("Summary"), "berschrift1")
    + paragraph(run("All is well. See ") + f"<w:hyperlink r:id='link'>{run('here')}</w:hyperlink>")
    + paragraph(run("Figures"), "berschrift1")
    + table([["Name", "Age"], ["Ann", "30"]], first_row=1),
    styles=STYLES,
)


def read(
    kind: DocumentKind, body: bytes, format: Format = "markdown", section: str | None = None, pages: str | None = None
) -> Page:
    return page_reader(kind)(source(kind, body, format, section, pages))


def test_a_word_document_becomes_markdown():
    page = read("word", REPORT)
    assert page.text == (
        "# Summary\n\nAll is well. See [here](https://example.org/)\n\n"
        "# Figures\n\n| Name | Age |\n| --- | --- |\n| Ann | 30 |"
    )
    assert page.kind == "word"


def test_notes_of_a_word_document_become_footnotes():
    notes = f"<w:footnotes {WORD_NAMES}><w:footnote w:id='2'>{paragraph(run('A note.'))}</w:footnote></w:footnotes>"
    text = paragraph(run("Text") + "<w:r><w:footnoteReference w:id='2'/></w:r>")
    assert read("word", word(text, footnotes=notes)).text == "Text[^1]\n\n[^1]: A note."


def test_a_document_is_returned_as_text_or_links():
    assert read("word", REPORT, "text").text.startswith("Summary\n\nAll is well. See here\n\nFigures")
    assert read("word", REPORT, "links").text == "- [here](https://example.org/)"


def test_a_section_of_a_document_starts_at_its_heading():
    assert read("word", REPORT, section="Figures").text.startswith("# Figures\n\n| Name")
    with pytest.raises(FetchError, match="no such section"):
        read("word", REPORT, section="Nothing")


def test_metadata_of_a_document_has_its_properties_and_outline():
    about = json.loads(read("word", REPORT, "metadata").text)
    assert about == {"kind": "word", "outline": ["# Summary", "# Figures"]}
    page = read("epub", book({"a.xhtml": "<h2>On</h2>"}, "<dc:title>Bread</dc:title>"), "metadata")
    assert json.loads(page.text) == {"kind": "epub", "chapters": 1, "title": "Bread", "outline": ["## On"]}
    assert (page.metadata.title, page.metadata.description) == ("Bread", "")


def test_a_sheet_is_selected_as_a_section():
    workbook = one_sheet(["a"], name="One")
    workbook.create_sheet("Two").append(["b"])
    assert read("sheets", written(workbook), section="Two").text == "## Two\n\nb"
    assert read("opendocument", opened("text", "<text:p>Hello</text:p>")).text == "Hello"


def test_slides_are_selected_as_pages():
    assert read("slides", slides(shape("one"), shape("two")), pages="2").text == "## Slide 2\n\ntwo"


def test_hidden_text_of_a_book_is_omitted_and_counted():
    page = read("epub", book({"a.xhtml": "<p>shown</p><p hidden='hidden'>obey</p>"}))
    assert (page.text, page.removed.elements) == ("shown", 1)
