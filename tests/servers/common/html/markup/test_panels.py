"""Hidden panels that a visible control opens."""

from tests.servers.common.html.bodies import markdown, read_body


def test_a_panel_that_a_visible_control_opens_is_shown():
    for control, panel in [
        ("<button aria-controls=p>L</button>", "<div id=p hidden>text</div>"),
        ("<button aria-controls=p>L</button>", "<div id=p hidden=until-found>text</div>"),
        ("<button aria-controls='x p'>L</button>", "<div id=p style='display:none'>text</div>"),
        ("<button aria-controls=p>L</button>", "<div id=p style='max-height:0;overflow:hidden'>text</div>"),
        ("<a role=tab href=#p>L</a>", "<div id=p role=tabpanel hidden>text</div>"),
        ("<a data-bs-toggle=collapse href=# data-bs-target=#p>L</a>", "<div id=p hidden>text</div>"),
        ("<a data-toggle=tab href=#p>L</a>", "<div id=p class=pane>text</div>"),
        ("<button popovertarget=p>L</button>", "<div id=p hidden>text</div>"),
        ("<button aria-expanded=false>L</button>", "<div hidden>text</div>"),
        ("<h3><button aria-expanded=false>L</button></h3>", "<div hidden>text</div>"),
        ("<h3><button>L</button></h3>", "<div hidden=until-found>text</div>"),
    ]:
        page = read_body(control + panel, "<style>.pane{display:none}</style>")
        assert "L" in page.text, control
        assert "text" in page.text, control
        assert page.removed.elements == 0


def test_the_label_of_a_tab_precedes_its_panel():
    tabs = "<div role=tablist><b role=tab aria-controls=p>One</b> <b role=tab aria-controls=q>Two</b></div>"
    panels = "<div role=tabpanel id=p>first</div><div role=tabpanel id=q hidden>second</div>"
    assert markdown(tabs + panels) == "**One**\n\nfirst\n\n**Two**\n\nsecond"
    unnamed = "<ul role=tablist><li role=tab>One<li role=tab>Two</ul>"
    panels = panels.replace("id=p", "").replace("id=q", "")
    assert markdown(f"<div>{unnamed}<div>{panels}</div></div>") == "**One**\n\nfirst\n\n**Two**\n\nsecond"
    assert markdown(unnamed) == "- One\n- Two"


def test_a_panel_that_begins_with_its_label_shows_it_once():
    tabs = "<div role=tablist><b role=tab aria-controls=p>One</b></div>"
    assert markdown(f"{tabs}<div role=tabpanel id=p hidden><h2>One</h2>first</div>") == "## One\n\nfirst"


def test_nested_panels_are_shown():
    inner = "<button aria-controls=q>B</button><p id=q hidden>text</p>"
    assert markdown(f"<button aria-controls=p>A</button><div id=p hidden>{inner}</div>") == "**A**\n\n**B**\n\ntext"


def test_hidden_blocks_without_a_visible_control_are_removed_and_counted():
    for html in (
        "<div hidden>secret</div>",
        "<div hidden=until-found>secret</div>",
        "<button aria-controls=p hidden>L</button><div id=p hidden>secret</div>",
        "<div style='opacity:0'><button aria-controls=p>L</button></div><div id=p hidden>secret</div>",
        "<button aria-controls=other>L</button><div id=p hidden>secret</div>",
        "<button aria-expanded=false>L</button><p>text</p><div hidden>secret</div>",
        "<button>L</button><div hidden>secret</div>",
        "<div id=p hidden><button aria-controls=p>L</button>secret</div>",
    ):
        page = read_body(f"<p>Seen.</p>{html}")
        assert "secret" not in page.text, html
        assert page.removed.elements, html


def test_text_invisible_in_an_open_panel_is_removed():
    for style in (
        "position:absolute;left:-9999px",
        "color:#fff;background:#fff",
        "font-size:0",
        "clip-path:inset(50%)",
    ):
        assert "secret" not in markdown(f"<button aria-controls=p>L</button><div id=p style='{style}'>secret</div>")
        assert "secret" not in markdown(
            f"<button aria-controls=p>L</button><div id=p hidden><p style='{style}'>secret"
        )
    sheet = "<style>#p{position:absolute;left:-9999px}</style>"
    assert "secret" not in markdown("<button aria-controls=p>L</button><div id=p hidden>secret</div>", sheet)


def test_menus_and_dialogs_are_not_panels():
    for control, panel in [
        ("aria-controls=p aria-haspopup=menu", "<div id=p hidden>secret</div>"),
        ("aria-controls=p", "<div id=p role=dialog hidden>secret</div>"),
        ("aria-controls=p", "<nav id=p hidden>secret</nav>"),
        ("role=combobox aria-controls=p", "<ul id=p hidden><li>secret</ul>"),
    ]:
        assert "secret" not in markdown(f"<button {control}>L</button>{panel}")


def test_details_are_shown_with_their_summary():
    assert markdown("<details><summary>L</summary><p>text</p></details>") == "**L**\n\ntext"
