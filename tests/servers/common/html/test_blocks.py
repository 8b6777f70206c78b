"""Which tables are data, and what their cells hold."""

from tests.servers.common.html.bodies import markdown, plain

PRE = "<pre>a = 1\n  b|c</pre>"


def test_block_content_stays_in_its_cell():
    for cell, written in [
        (PRE, r"`a = 1`<br>`  b\|c`"),
        ("<pre>one</pre>", "`one`"),
        ("<ul><li>x<li>y</ul>", "- x<br>- y"),
        ("<p>a</p><ol><li>x<li>y</ol><p>b</p>", "a<br>1. x<br>2. y<br>b"),
        ("<p>a</p><p>b<br>c</p>", "a b c"),
        ("<table><tr><td>k<td>v<tr><td>l<td>w</table>", "k: v<br>l: w"),
        ("<table><tr><td>k<td>v<td>w<tr><td>l</table>", "k, v, w<br>l"),
        ("<form><button>Go</button></form>", "Go"),
        ("<h5>Name</h5>text", "**Name** text"),
        ("a<hr>b", "a b"),
    ]:
        table = f"<table><tr><th>A<th>B<tr><td>1<td>{cell}</table>"
        assert markdown(table) == f"| A | B |\n| --- | --- |\n| 1 | {written} |", cell


def test_code_in_a_table_without_headers_is_data_where_there_are_rows():
    assert markdown(f"<table><tr><td>1<td>2<tr><td>x<td>{PRE}</table>").endswith(r"| x | `a = 1`<br>`  b\|c` |")


def test_tables_for_layout_are_what_they_hold():
    for table in (
        "<table><tr><td>a<td><table><tr><td>b</table><tr><td>c<td>d</table>",
        "<table><tr><th>a<th>b<tr><td><h2>c</h2><td>d</table>",
        "<table role=presentation><tr><th>a<th>b<tr><td>c<td>d</table>",
        "<table><tr><td class=linenos><pre>1</pre><td><pre>c</pre></table>",
        "<table><tr><th class=filename>x<tr><td class=linenos><pre>1</pre><td><pre>c</pre></table>",
    ):
        assert "|" not in markdown(table), table


def test_a_long_cell_makes_no_layout_of_a_table_with_headers_or_with_rows_of_several_cells():
    long = "word " * 500
    for table in (
        f"<table><tr><th>Name<th>What<tr><td>a<td>{long}</table>",
        f"<table><tr><td>a<td>{long}<tr><td>b<td>c<tr><td>d<td>e</table>",
    ):
        assert f"| a | {long.strip()} |" in markdown(table)
    layout = f"<table><tr><td colspan=2>Head<tr><td>Menu<td>{long}<tr><td colspan=2>Foot</table>"
    assert markdown(layout) == f"Head\n\nMenu\n\n{long.strip()}\n\nFoot"


def test_a_table_with_code_as_text():
    assert plain(f"<table><tr><th>A<th>B<tr><td>1<td>{PRE}</table>") == "A | B\n1 | a = 1 b|c"
