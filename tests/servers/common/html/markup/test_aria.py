"""Text from attributes and roles: alternatives in cells, checkboxes, headings, tables."""

from tests.servers.common.html.bodies import markdown


def test_a_cell_with_an_icon_has_its_alternative_text():
    for cell, text in [
        ("<img alt=No>", "No"),
        ("<img src=/n.png alt=No>", "No"),
        ("<img src=/n.png title=No>", "No"),
        ("<i class=x aria-label=No></i>", "No"),
        ("<span title=No></span>", "No"),
        ("<svg><title>No</title><path/></svg>", "No"),
        ("<svg role=img aria-label=No></svg>", "No"),
        ("<svg aria-hidden=true><title>x</title></svg>No", "No"),
        ("<a href=/n><img src=/n.png alt=No></a>", "[No](https://example.com/n)"),
        ("<input type=checkbox disabled checked>", "[x]"),
        ("<input type=checkbox>", ""),
        ("<img src=/p.png alt=Portrait width=300>", "![Portrait](https://example.com/p.png)"),
        ("No <img src=/n.png alt=cross>", "No ![cross](https://example.com/n.png)"),
    ]:
        table = f"<table><tr><th>A<th>B<tr><td>1<td>{cell}</table>"
        assert markdown(table) == f"| A | B |\n| --- | --- |\n| 1 | {text} |", cell


def test_checkboxes_of_a_list_become_task_items():
    for item in (
        "<li><input type=checkbox checked> done",
        "<li><label><input type=checkbox checked>done</label>",
        "<li><p><input type=checkbox checked disabled> done</p>",
        "<li data-checked=true><label><input type=checkbox></label><div><p>done</p></div>",
        "<li><span role=checkbox aria-checked=true></span> done",
    ):
        assert markdown(f"<ul>{item}</ul>") == "- [x] done", item
        item = item.replace("checked=true", "checked=false").replace(" checked", "")
        if "aria-" not in item:
            assert markdown(f"<ul>{item}</ul>") == "- [ ] done", item


def test_an_element_with_the_role_heading_is_a_heading():
    assert markdown("<div role=heading aria-level=3>H</div><p>t") == "### H\n\nt"
    assert markdown("<div role=heading>H</div><p>t") == "## H\n\nt"


def test_an_element_with_the_role_img_becomes_its_label():
    assert markdown("<p>Rated <span role=img aria-label='4 of 5'></span></p>") == "Rated 4 of 5"


def test_ruby_text_is_in_brackets():
    for html in ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>", "<ruby>漢<rt>kan</rt></ruby>"):
        assert markdown(f"<p>{html}</p>") == "漢(kan)"


def test_a_link_around_a_card_is_moved_to_its_heading():
    assert markdown("<a href=/x><span>New</span><h3>Card</h3><p>text</p></a>") == (
        "New\n\n### [Card](https://example.com/x)\n\ntext"
    )


TABLE = "| Name | Port |\n| --- | --- |\n| http | 80 |"


def test_elements_with_table_roles_are_a_table():
    head = "<div role=row><span role=columnheader>Name</span> <span role=columnheader>Port</span></div>"
    row = "<div role=row><div><span role={0}>http</span></div><span role={0}>80</span></div>"
    for kind, cell in (("table", "cell"), ("grid", "gridcell"), ("treegrid", "gridcell")):
        for body in (head + row, f"<div role=rowgroup>{head}</div><div role=rowgroup><div>{row}</div></div>"):
            assert markdown(f"<div role={kind}>{body.format(cell)}</div>") == TABLE, (kind, body)


def test_table_roles_with_text_outside_cells_are_no_table():
    for body in (
        "<div role=row><i role=cell>a</i><i role=cell>b</i></div><div role=row>c<i role=cell>d</i></div>",
        "<i role=cell>a</i><div role=row><i role=cell>b</i><i role=cell>c</i></div>",
        "<div role=row>a b</div>",
    ):
        assert "|" not in markdown(f"<div role=table>{body}</div>"), body
