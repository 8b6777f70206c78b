"""Data tables, layout tables, and the contents of cells; blocks of code."""

from tests.servers.common.html.bodies import markdown, plain

PRE = "<pre>a = 1\n  b|c</pre>"


def test_blocks_in_a_table_cell_stay_in_the_cell():
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


def test_a_headerless_table_of_several_rows_with_code_is_a_data_table():
    assert markdown(f"<table><tr><td>1<td>2<tr><td>x<td>{PRE}</table>").endswith(r"| x | `a = 1`<br>`  b\|c` |")


def test_layout_tables_are_written_as_their_content():
    for table in (
        "<table><tr><td>a<td><table><tr><td>b</table><tr><td>c<td>d</table>",
        "<table><tr><th>a<th>b<tr><td><h2>c</h2><td>d</table>",
        "<table role=presentation><tr><th>a<th>b<tr><td>c<td>d</table>",
        "<table><tr><td class=linenos><pre>1</pre><td><pre>c</pre></table>",
        "<table><tr><th class=filename>x<tr><td class=linenos><pre>1</pre><td><pre>c</pre></table>",
    ):
        assert "|" not in markdown(table), table


def test_a_long_cell_does_not_make_a_data_table_a_layout_table():
    long = "word " * 500
    for table in (
        f"<table><tr><th>Name<th>What<tr><td>a<td>{long}</table>",
        f"<table><tr><td>a<td>{long}<tr><td>b<td>c<tr><td>d<td>e</table>",
    ):
        assert f"| a | {long.strip()} |" in markdown(table)
    layout = f"<table><tr><td colspan=2>Head<tr><td>Menu<td>{long}<tr><td colspan=2>Foot</table>"
    assert markdown(layout) == f"Head\n\nMenu\n\n{long.strip()}\n\nFoot"


def test_rows_of_a_table_are_in_display_order():
    body = "<tfoot><tr><td>Sum<td>3</tfoot><tbody><tr><td>A<td>3</tbody><thead><tr><th>Name<th>Price</thead>"
    assert markdown(f"<table>{body}</table>") == "| Name | Price |\n| --- | --- |\n| A | 3 |\n| Sum | 3 |"


def test_a_table_with_code_is_written_as_plain_text():
    assert plain(f"<table><tr><th>A<th>B<tr><td>1<td>{PRE}</table>") == "A | B\n1 | a = 1 b|c"


def test_lines_of_code_marked_by_style_or_class_are_separated():
    for line in ("class=line", "style='display:block'", "class='token-line x'"):
        html = f"<pre><code><span {line}>if a:</span><span {line}><i>    b()</i></span></code></pre>"
        assert markdown(html) == "```\nif a:\n    b()\n```", line
        html = f"<pre><span {line}>a\n</span><span {line}>b</span>\n<span {line}>c</span></pre>"
        assert markdown(html) == "```\na\nb\nc\n```", line
        html = f"<pre><span {line}>a</span><br><span {line}></span><br><span {line}>b</span></pre>"
        assert markdown(html) == "```\na\n\nb\n```", line


def test_a_button_in_code_is_omitted():
    for html in ("<pre><button>Copy</button>a = 1</pre>", "<pre><code>a = 1</code><button>Copy</button></pre>"):
        assert markdown(html) == "```\na = 1\n```"


def test_all_cells_of_a_wide_row_are_written():
    row = "".join(f"<td>{number}" for number in range(300))
    assert markdown(f"<table><tr>{row}<tr>{row}</table>").count("| 299 |") == 2


def test_line_numbers_in_lines_of_code_are_omitted():
    for kind in ("ln", "lnt", "linenumber"):
        lines = f"<span class={kind}>1</span>a\n", f"<span class={kind}>2</span>b\n"
        assert markdown(f"<pre>{''.join(lines)}</pre>") == "```\na\nb\n```", kind


def test_no_break_spaces_in_code_become_spaces():
    assert markdown("<pre>if a:\n&nbsp; b()</pre>") == "```\nif a:\n  b()\n```"
