import pytest

from servers.common.documents import opendocument
from servers.common.documents.document import DocumentError
from servers.common.documents.opendocument import read_opendocument
from tests.servers.common.documents.archives import OPEN_NAMES, opened

BOLD = '<style:style style:name="B"><style:text-properties fo:font-weight="bold"/></style:style>'
NUMBERED = '<text:list-style style:name="N"><text:list-level-style-number text:level="1"/></text:list-style>'


def cells(*texts: str) -> str:
    written = (f"<table:table-cell><text:p>{text}</text:p></table:table-cell>" for text in texts)
    return f"<table:table-row>{''.join(written)}</table:table-row>"


def table(rows: str, name: str = "Data", style: str = "") -> str:
    return f'<table:table table:name="{name}" table:style-name="{style}">{rows}</table:table>'


def test_headings_links_and_emphasis_of_a_text_are_kept():
    body = (
        '<text:h text:outline-level="2">Plan</text:h><text:p>See <text:a xlink:href="https://example.org/">here</text:a>'
        '<text:s/><text:span text:style-name="B">now</text:span></text:p>'
    )
    html = read_opendocument(opened("text", body, BOLD)).html
    assert html == '<h2>Plan</h2><p>See <a href="https://example.org/">here</a> <strong>now</strong></p>'


def test_styles_determine_code_quotations_and_the_title():
    mine = '<style:style style:name="P1" style:parent-style-name="Preformatted_20_Text"/>'
    body = (
        '<text:p text:style-name="Title">Plan</text:p><text:p text:style-name="Quotations">As said.</text:p>'
        '<text:p text:style-name="P1">if a:</text:p>'
        '<text:p text:style-name="P1"><text:s text:c="4"/>b<text:line-break/>c</text:p>'
        '<text:p>Call <text:span text:style-name="Source_20_Text">b</text:span>.</text:p>'
    )
    assert read_opendocument(opened("text", body, mine)).html == (
        "<h1>Plan</h1><blockquote><p>As said.</p></blockquote><pre>if a:\n    b<br>c</pre><p>Call <code>b</code>.</p>"
    )


def test_lists_are_nested_and_numbered_by_style():
    inner = "<text:list><text:list-item><text:p>b</text:p></text:list-item></text:list>"
    body = f'<text:list text:style-name="N"><text:list-item><text:p>a</text:p>{inner}</text:list-item></text:list>'
    html = read_opendocument(opened("text", body, NUMBERED)).html
    assert html == "<ol><li><p>a</p><ol><li><p>b</p></li></ol></li></ol>"


def test_footnotes_are_at_the_end_and_comments_counted():
    note = "<text:note><text:note-body><text:p>A note.</text:p></text:note-body></text:note>"
    body = f"<text:p>Text{note}<office:annotation><text:p>Why?</text:p></office:annotation></text:p>"
    document = read_opendocument(opened("text", body))
    assert document.html == (
        '<p>Text<sup><a href="#footnote-1">1</a></sup></p><ol><li id="footnote-1"><p>A note.</p></li></ol>'
    )
    assert document.notes == ("Left out: comments (1).",)


@pytest.mark.parametrize("name", ["text:tracked-changes", "text:sequence-decls", "office:forms"])
def test_deleted_text_and_declarations_are_not_shown(name):
    body = f"<{name}><text:p>Gone.</text:p></{name}><text:p>Here.</text:p>"
    assert read_opendocument(opened("text", body)).html == "<p>Here.</p>"


def test_formulas_and_picture_descriptions_are_kept():
    formula = '<math xmlns="http://www.w3.org/1998/Math/MathML"><mi>x</mi></math>'
    body = (
        '<text:p>So <draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>.</text:p>'
        "<text:p><draw:frame><svg:desc>A map</svg:desc></draw:frame></text:p>"
    )
    html = read_opendocument(opened("text", body, **{"Object 1/content.xml": formula})).html
    assert html == "<p>So <math><mi>x</mi></math>.</p><p><em>Picture: A map</em></p>"


def test_sheets_become_tables_without_trailing_empty_cells():
    rest = '<table:table-cell table:number-columns-repeated="16384"/>'
    many = f'<table:table-row table:number-rows-repeated="1048576">{rest}</table:table-row>'
    twice = '<table:table-cell table:number-columns-repeated="2"><text:p>x</text:p></table:table-cell>'
    rows = cells("Name", "Age") + f"<table:table-row>{twice}{rest}</table:table-row>" + many
    document = read_opendocument(opened("spreadsheet", table(rows)))
    assert document.html == (
        "<h2>Data</h2><table><tr><th><p>Name</p></th><th><p>Age</p></th></tr>"
        "<tr><td><p>x</p></td><td><p>x</p></td></tr></table>"
    )
    assert document.counts == {"sheets": 1}


def test_hidden_sheets_are_omitted_and_one_sheet_can_be_read():
    hidden = '<style:style style:name="H"><style:table-properties table:display="false"/></style:style>'
    sheets = table(cells("a")) + table(cells("b"), "Secret", "H") + table(cells("c"), "Last")
    file = opened("spreadsheet", sheets, hidden)
    document = read_opendocument(file)
    assert "Secret" not in document.html
    assert document.notes == ("Left out: hidden sheets (1).",)
    assert read_opendocument(file, sheet="Last").html.startswith("<h2>Last</h2><table>")


def test_cells_over_the_limit_are_omitted_with_a_note(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(opendocument, "MAX_CELLS", 3)
    document = read_opendocument(opened("spreadsheet", table(cells("a", "b") * 4)))
    assert document.html.count("<tr>") == 2
    assert len(document.notes) == 1


def test_slides_have_titles_texts_and_notes():
    def frame(text: str, kind: str) -> str:
        box = f"<draw:text-box><text:p>{text}</text:p></draw:text-box>"
        return f'<draw:frame presentation:class="{kind}">{box}</draw:frame>'

    notes = f"<presentation:notes>{frame('Say hello.', 'notes')}</presentation:notes>"
    first = f"<draw:page>{frame('Plans', 'title')}{frame('We go on.', 'outline')}{notes}</draw:page>"
    file = opened("presentation", f"{first}<draw:page>{frame('End', 'title')}</draw:page>")
    assert read_opendocument(file).html == (
        "<h2>Slide 1: Plans</h2><p>We go on.</p><p><strong>Notes:</strong></p><p>Say hello.</p><h2>Slide 2: End</h2>"
    )
    assert read_opendocument(file, pages="2").html == "<h2>Slide 2: End</h2>"


def test_choosing_pages_of_a_text_is_refused():
    with pytest.raises(DocumentError, match="has no pages to choose") as caught:
        read_opendocument(opened("text", ""), pages="2")
    assert caught.value.code == "bad_argument"


def test_a_file_with_a_password_is_refused():
    manifest = {"META-INF/manifest.xml": "<m><encryption-data/></m>", "meta.xml": f"<m {OPEN_NAMES}/>"}
    with pytest.raises(DocumentError, match="needs a password"):
        read_opendocument(opened("text", "", **manifest))


def test_repeated_rows_are_expanded():
    row = cells("a", "b").replace("<table:table-row>", '<table:table-row table:number-rows-repeated="3">')
    rows = cells("X", "Y") + row + row.replace("<text:p>a</text:p>", "").replace("<text:p>b</text:p>", "")
    document = read_opendocument(opened("spreadsheet", table(rows)))
    assert document.html.count("<td><p>a</p></td><td><p>b</p></td>") == 3
    assert document.html.count("<tr>") == 4
    assert document.notes == ()


@pytest.mark.parametrize("repeated", ["rows", "columns"])
def test_excessive_repetition_is_truncated_with_a_note(repeated: str):
    row = cells("a", "b")
    if repeated == "rows":
        row = row.replace("<table:table-row>", '<table:table-row table:number-rows-repeated="1000000">')
    else:
        cell = '<table:table-cell table:number-columns-repeated="201">'
        row = row.replace("<table:table-cell>", cell)
    document = read_opendocument(opened("spreadsheet", table(row)))
    assert len(document.html) < 1_000_000
    assert document.notes == (opendocument._CUT_NOTE,)
