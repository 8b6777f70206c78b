import pytest

from servers.common.documents.document import DocumentError
from servers.common.documents.word import read_word
from tests.servers.common.documents.archives import WORD_NAMES, archive, word


def run(text: str, look: str = "") -> str:
    return f"<w:r><w:rPr>{look}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


def paragraph(content: str, style: str = "") -> str:
    return f"<w:p><w:pPr><w:pStyle w:val='{style}'/></w:pPr>{content}</w:p>" if style else f"<w:p>{content}</w:p>"


def table(rows: list[list[str]], first_row: int) -> str:
    cells = ["".join(f"<w:tc>{paragraph(run(cell))}</w:tc>" for cell in row) for row in rows]
    look = f"<w:tblPr><w:tblLook w:val='0000' w:firstRow='{first_row}'/></w:tblPr>"
    return f"<w:tbl>{look}{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


STYLES = (
    f"<w:styles {WORD_NAMES}><w:style w:type='paragraph' w:styleId='Titel'><w:name w:val='Title'/></w:style>"
    "<w:style w:type='paragraph' w:styleId='berschrift1'><w:name w:val='heading 1'/></w:style></w:styles>"
)


def test_headings_are_recognized_by_style_name():
    body = (
        paragraph(run("A report"), "Titel")
        + paragraph(run("Summary"), "berschrift1")
        + paragraph(run("All is well."))
    )
    html = read_word(word(body, styles=STYLES)).html
    assert html == "<h1>A report</h1><h1>Summary</h1><p>All is well.</p>"


def test_consecutive_lines_of_code_are_one_block():
    styles = (
        f"<w:styles {WORD_NAMES}><w:style w:type='paragraph' w:styleId='C'><w:name w:val='Source Code'/></w:style>"
    )
    body = paragraph(run("if a:"), "C") + paragraph(run("    b"), "C")
    assert read_word(word(body, styles=f"{styles}</w:styles>")).html == "<pre>if a:\n    b</pre>"


def test_links_and_emphasis_are_kept():
    link = f"<w:hyperlink r:id='link'>{run('here')}</w:hyperlink>"
    html = read_word(word(paragraph(run("See ") + link + run(" now", "<w:b/>")))).html
    assert html == '<p>See <a href="https://example.org/">here</a><strong> now</strong></p>'


def test_the_first_row_of_a_table_is_its_head_only_if_formatted_so():
    rows = [["Name", "Age"], ["Ann", "30"]]
    assert "<thead><tr><th><p>Name</p></th>" in read_word(word(table(rows, first_row=1))).html
    assert "<th>" not in read_word(word(table(rows, first_row=0))).html


def test_formulas_are_converted_to_tex():
    power = "<m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    inline = read_word(word(paragraph(run("So ") + f"<m:oMath>{power}</m:oMath>" + run(".")))).html
    assert inline == "<p>So <math>x^2</math>.</p>"
    display = read_word(word(paragraph(f"<m:oMathPara><m:oMath>{power}</m:oMath></m:oMathPara>"))).html
    assert display == "<p><math>x^2</math></p>"


def test_hidden_text_is_omitted_and_counted():
    document = read_word(
        word(paragraph(run("shown") + run("hidden", "<w:vanish/>") + run("!", "<w:vanish w:val='0'/>")))
    )
    assert document.html == "<p>shown!</p>"
    assert document.notes == ("Left out: hidden texts (1).",)


def test_footnotes_are_at_the_end_and_comments_counted():
    notes = f"<w:footnotes {WORD_NAMES}><w:footnote w:id='2'>{paragraph(run('A note.'))}</w:footnote></w:footnotes>"
    comments = f"<w:comments {WORD_NAMES}><w:comment w:id='1'>{paragraph(run('Why?'))}</w:comment></w:comments>"
    body = paragraph(run("Text") + "<w:r><w:footnoteReference w:id='2'/></w:r>")
    document = read_word(word(body, footnotes=notes, comments=comments))
    assert document.html == (
        '<p>Text<sup><a href="#footnote-2" id="footnote-ref-2">1</a></sup></p>'
        '<ol><li id="footnote-2"><p>A note.</p></li></ol>'
    )
    assert document.notes == ("Left out: comments (1).",)


def test_deleted_text_is_omitted_and_inserted_text_kept():
    body = paragraph(f"<w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:ins>{run('new')}</w:ins>")
    assert read_word(word(body)).html == "<p>new</p>"


def test_an_archive_without_a_document_part_is_refused():
    with pytest.raises(DocumentError, match="it does not say which part is the document") as caught:
        read_word(archive({"[Content_Types].xml": "<Types/>"}))
    assert caught.value.code == "unreadable"
