import pytest

from servers.common.documents.charts import MAX_POINTS
from servers.common.documents.document import DocumentError
from servers.common.documents.slides import read_slides
from tests.servers.common.documents.archives import SLIDE_NAMES, shape, slide, slides


def lines(*texts: tuple[int, str], signs: str = "") -> str:
    return "".join(
        f'<a:p><a:pPr lvl="{level}">{signs}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>' for level, text in texts
    )


def test_a_slide_becomes_a_heading_with_number_and_title_and_its_texts():
    html = read_slides(slides(shape("Plans", "title") + shape("We go on."), shape("No title"))).html
    assert html == "<h2>Slide 1: Plans</h2><p>We go on.</p><h2>Slide 2</h2><p>No title</p>"


def test_texts_of_a_placeholder_become_nested_lists():
    html = read_slides(slides(shape(lines((0, "a"), (1, "b"), (1, "c"), (0, "d")), "body"))).html
    assert html == "<h2>Slide 1</h2><ul><li>a<ul><li>b</li><li>c</li></ul></li><li>d</li></ul>"


def test_numbered_lines_become_a_numbered_list():
    html = read_slides(slides(shape(lines((0, "a"), (0, "b"), signs='<a:buAutoNum type="arabicPeriod"/>')))).html
    assert html == "<h2>Slide 1</h2><ol><li>a</li><li>b</li></ol>"


def test_links_line_breaks_and_groups_are_kept():
    link = '<a:r><a:rPr><a:hlinkClick r:id="link"/></a:rPr><a:t>site</a:t></a:r>'
    lines = f"<a:p>{link}<a:br/><a:r><a:t>b</a:t></a:r></a:p>"
    html = read_slides(slides(f"<p:grpSp>{shape(lines)}</p:grpSp>")).html
    assert html == '<h2>Slide 1</h2><p><a href="https://example.org/">site</a><br>b</p>'


def test_the_first_row_of_a_table_is_its_head_and_merged_cells_have_one_value():
    cells = [["Name", "Age"], ["Ann", None]]
    rows = "".join(
        "<a:tr>"
        + "".join(
            '<a:tc hMerge="1"><a:txBody><a:p/></a:txBody></a:tc>'
            if cell is None
            else f"<a:tc><a:txBody><a:p><a:r><a:t>{cell}</a:t></a:r></a:p></a:txBody></a:tc>"
            for cell in row
        )
        + "</a:tr>"
        for row in cells
    )
    html = read_slides(slides(f"<p:graphicFrame><a:tbl>{rows}</a:tbl></p:graphicFrame>")).html
    assert html.endswith("<table><tr><th>Name</th><th>Age</th></tr><tr><td>Ann</td><td></td></tr></table>")


def test_a_chart_becomes_a_table_of_its_data():
    def points(values: list[str]) -> str:
        return "".join(f'<c:pt idx="{at}"><c:v>{value}</c:v></c:pt>' for at, value in enumerate(values))

    series = "".join(
        f"<c:ser><c:tx><c:strRef><c:f>A!$B$1</c:f><c:strCache>{points([name])}</c:strCache></c:strRef></c:tx>"
        f"<c:cat><c:strRef><c:strCache>{points(['May', 'June'])}</c:strCache></c:strRef></c:cat>"
        f"<c:val><c:numRef><c:numCache>{points(values)}</c:numCache></c:numRef></c:val></c:ser>"
        for name, values in (("North", ["1", "2"]), ("South", ["3"]))
    )
    title = "<c:title><a:t>Sales</a:t></c:title>"
    chart = f"<c:chartSpace {SLIDE_NAMES}><c:chart>{title}{series}</c:chart></c:chartSpace>"
    html = read_slides(slides('<p:graphicFrame><c:chart r:id="chart"/></p:graphicFrame>', chart1=chart)).html
    assert html.endswith(
        "<p><em>Chart: Sales</em></p><table><tr><th></th><th>North</th><th>South</th></tr>"
        "<tr><td>May</td><td>1</td><td>3</td></tr><tr><td>June</td><td>2</td><td></td></tr></table>"
    )


def test_a_long_chart_is_truncated_with_the_number_of_rows():
    points = "".join(f'<c:pt idx="{number}"><c:v>{number}</c:v></c:pt>' for number in range(MAX_POINTS + 1))
    series = f"<c:ser><c:val>{points}</c:val></c:ser>"
    chart = f"<c:chartSpace {SLIDE_NAMES}><c:chart>{series}</c:chart></c:chartSpace>"
    html = read_slides(slides('<p:graphicFrame><c:chart r:id="chart"/></p:graphicFrame>', chart1=chart)).html
    assert "The first 500 of its 501 rows" in html
    assert ">499<" in html
    assert ">500<" not in html


def test_notes_and_picture_descriptions_are_kept_and_footers_are_not():
    notes = f"<p:notes {SLIDE_NAMES}>{shape('1', 'sldNum')}{shape('Say hello.', 'body')}</p:notes>"
    picture = '<p:pic><p:nvPicPr><p:cNvPr id="2" name="x" descr="A map"/></p:nvPicPr></p:pic>'
    html = read_slides(slides(picture + shape("page 1", "ftr"), notes1=notes)).html
    assert html == (
        "<h2>Slide 1</h2><p><em>Picture: A map</em></p><p><strong>Notes:</strong></p><ul><li>Say hello.</li></ul>"
    )


def test_hidden_slides_are_omitted_and_counted():
    hidden = slide(shape("secret")).replace("<p:sld ", '<p:sld show="0" ', 1)
    document = read_slides(slides(shape("shown"), hidden))
    assert "secret" not in document.html
    assert document.counts == {"slides": 2}
    assert document.notes == ("Left out: hidden slides (1).",)


def test_only_the_requested_slides_are_read():
    file = slides(shape("one"), shape("two"), shape("three"))
    assert read_slides(file, "3").html == "<h2>Slide 3</h2><p>three</p>"
    with pytest.raises(DocumentError, match="there are only 3 pages, so there is no page 4"):
        read_slides(file, "4")


def test_slides_over_the_limit_are_named_in_a_note(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("servers.common.documents.slides.MAX_SLIDES", 2)
    document = read_slides(slides("", "", "", ""))
    assert document.notes == ("The first 2 slides were read: continue with pages=3-4.",)
