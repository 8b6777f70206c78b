"""The main content of a page: complete, and without the navigation around it."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.fetch.read.html.content.lines import IN_BRACKETS
from servers.fetch.read.html.page import read_html

URL = "https://example.com/docs/page.html"
WORDS = "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all. "
LONG = f"<p>{WORDS * 4}</p>"


def text_of(inside: str) -> str:
    """Returns the main content of an article with this markup, between a menu and a footer."""
    page = f"""<!doctype html><title>Foxes</title><body><nav><ul><li><a href="/">Home</a></ul></nav>
<main><article><h1>Foxes</h1>{LONG}{inside}{LONG}</article></main>
<footer><p>Copyright The Paper. <a href="/terms">Terms</a></p></footer>"""
    return read_html(page, URL, "text", None).text


def test_inline_elements_stay_in_their_sentence() -> None:
    for sentence, expected in [
        ("It opens at <time>half past nine</time> today.", "It opens at half past nine today."),
        ("The sum is <output>forty-two</output> of them.", "The sum is forty-two of them."),
        ("It prints <samp>no answer</samp> and ends.", "It prints no answer and ends."),
        ("Fill in <label>your name</label> and wait.", "Fill in your name and wait."),
        ("Press <button>Save</button> before you leave.", "Press Save before you leave."),
        ("Here <math><mi>a</mi></math> is a length.", "Here a is a length."),
        ("It <span class='info-bar'>never</span> ends.", "It never ends."),
        ("A <span class='rating'>good</span> book.", "A good book."),
    ]:
        assert expected in text_of(f"<p>{sentence}</p>")


def test_bare_text_between_paragraphs_is_content() -> None:
    sentences = [f"Said before paragraph {number}, and in none." for number in range(5)]
    page = f"<title>F</title><body><div>{''.join(f'{one}<p>More.</p>' for one in sentences)}{LONG}</div>"
    text = read_html(page, URL, "text", None).text
    assert [one for one in sentences if one not in text] == []
    text = text_of(f"{LONG}<div>Said before it.<p>More.</p>And after it.</div>")
    assert "Said before it." in text
    assert "And after it." in text


def test_a_short_example_between_paragraphs_is_content() -> None:
    links = "".join(f"<a href=/{number}>Chapter {number} of it</a> | " for number in range(3))
    text = f"<p>{WORDS}</p>"
    for code in ("num = 103;", "set logscale y", "$ make"):
        page = f"<title>Break</title><body><div>{links}</div><hr><h2>Break</h2>{text}<pre>{code}</pre>{text}<hr>"
        written = read_html(page, URL, "text", None).text
        assert code in written
        assert "Chapter" not in written


def test_an_invitation_to_subscribe_between_paragraphs_is_omitted() -> None:
    form = "<form><label>Your address</label><input type=email><button>Send</button></form>"
    text = text_of(f"<div><h4>The Fox Letter</h4><p>A tale of the sea every Sunday.</p>{form}</div>")
    assert [word for word in ("Letter", "Sunday", "address") if word in text] == []
    page = f"<title>Contact</title><main><h1>Contact</h1><p>Write to us at any time of the day.</p>{form}</main>"
    assert "at any time" in read_html(page, URL, "text", None).text


def test_a_button_between_paragraphs_is_omitted() -> None:
    assert "Copy" not in text_of("<div><pre>pip install foxes</pre><button>Copy</button></div>")
    assert "Save it before you leave, or it is lost." in text_of(
        "<p><button>Save</button> it before you leave, or it is lost.</p>"
    )


def test_the_only_headline_is_content() -> None:
    links = "<ul><li><a href=/x>java.lang.Object</a></li><li><a href=/y>ProjectComponent</a></li></ul>"
    page = (
        f"<title>Manual</title><body><div><a href=/p>Package foxes</a></div><h1>Class Fox</h1>{links}<p>{WORDS * 4}"
    )
    assert read_html(page, URL, "text", None).text.startswith("Class Fox\n")
    page = f"<title>Manual</title><body><nav><h1>All foxes</h1></nav>{links}<p>{WORDS * 4}"
    assert "All foxes" not in read_html(page, URL, "text", None).text


def test_a_block_between_paragraphs_is_content() -> None:
    for inside, expected in [
        (
            "<aside><h3>Note</h3><p>Foxes sleep by day, in summer too.</p></aside>",
            "Foxes sleep by day, in summer too.",
        ),
        ("<form><p>A fox that is asked nothing says nothing.</p><input></form>", "A fox that is asked nothing"),
        ("<div class='expand-container'><p>Opened by a click.</p></div>", "Opened by a click."),
        ("<dl><dt>Vixen</dt><dd>A fox that is she.</dd></dl>", "Vixen"),
        ("<figure><table><tr><th>Fox<th>Dog<tr><td>1<td>2</table></figure>", "Fox | Dog"),
        ("<div>Bare words in a block of their own.</div>", "Bare words in a block of their own."),
    ]:
        assert expected in text_of(inside)


@pytest.mark.parametrize(
    "question",
    [
        "<details><summary>{}</summary>{}</details>",
        "<div class='item'><h2><button type=button>{}</button></h2><div class=collapse>{}</div></div>",
        "<div class='tab'><label>{}</label><div>{}</div></div>",
        "<div class='item'><h3 class='navbar-anchor'>{}</h3>{}</div>",
    ],
)
def test_every_question_of_an_faq_is_content(question: str) -> None:
    questions = [f"Is this question number {number}?" for number in range(4)]
    items = "".join(question.format(one, LONG) for one in questions)
    text = read_html(f"<title>FAQ</title><body><h1>FAQ</h1><div class='faq'>{items}</div>", URL, "text", None).text
    assert [one for one in questions if one not in text] == []


@pytest.mark.parametrize(
    "part",
    [
        "<article>{}</article>",
        "<div class='post'>{}</div>",
        "<div class='grid'><div class='article-body'>{}</div></div>",
        "<article class='message'><div><div class='bbWrapper'>{}</div></div></article>",
        "<section class='entry-content' role='tabpanel'>{}</section>",
    ],
)
def test_all_similar_parts_are_content(part: str) -> None:
    parts = "".join(part.format(f"<p>This is part {number}.</p>{LONG}") for number in range(5))
    text = read_html(f"<title>Foxes</title><body><h1>Foxes</h1><div>{parts}</div>", URL, "text", None).text
    assert [number for number in range(5) if f"This is part {number}." not in text] == []


def test_a_sentence_under_the_headline_is_content() -> None:
    lead = "Foxes are said to be clever, and some of them are cleverer than that."
    page = f"<title>F</title><body><header><h1>Foxes</h1><p class=standfirst>{lead}</p></header><article>{LONG * 2}"
    assert lead in read_html(page, URL, "text", None).text


def test_navigation_header_and_footer_are_omitted() -> None:
    links = "".join(f"<li><a href=/{number}>Elsewhere foxes sing {number}</a>" for number in range(8))
    around = {
        "before": [
            f"<nav><ul>{links}</ul></nav>",
            f"<header><div>{links}</div></header>",
            f"<div role=navigation><p>{links}</p></div>",
        ],
        "after": [
            f"<footer><p>Elsewhere is ours.</p><ul>{links}</ul></footer>",
            f"<aside><h3>Elsewhere</h3><ul>{links}</ul></aside>",
            f"<div><h4>Elsewhere</h4><ul>{links}</ul></div>",
        ],
    }
    article = f"<main><article><h1>Foxes</h1>{LONG * 4}</article></main>"
    for place, parts in around.items():
        for part in parts:
            body = part + article if place == "before" else article + part
            text = read_html(f"<title>Foxes</title><body>{body}", URL, "text", None).text
            assert "Elsewhere" not in text
            assert WORDS.strip() in text


def test_links_within_a_text_are_content() -> None:
    for markup in (
        "<p>The ones are <a href=/a>foxes that sing at night</a><br>and dogs</p>",
        "<p>It is told at<br>" + "<a href=/a>https://example.com/foxes/singing</a><br>" * 3 + "</p>",
        "<p><a href=https://example.org/foxes>https://example.org/foxes/singing</a></p>",
        "<p>Good day <a href=/t/a rel=tag>#fox</a> <a href=/t/b rel=tag>#dog</a> <a href=/t/c rel=tag>#day</a></p>",
        "<p>He said:</p><p>(<a href=/a>Foxes do sing at night</a>)</p>",
        "<p>It is <span><a href=/a>a fox that sings</a>, <a href=/b>a dog that barks</a></span> and so on.</p>",
    ):
        first = re.sub(r"<[^>]*>", " ", markup).split()[0]
        assert re.search(rf"(?m)^{re.escape(first)}", text_of(markup))


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ('<dl><dt id="print">print(obj)</dt><dd>Prints it.</dd></dl>', ["print(obj)", "Prints it."]),
        (
            '<dl class="py function"><dt id="smtplib.SMTP.login">SMTP.login(user)</dt><dd>Logs in.</dd></dl>',
            ["SMTP.login(user)", "Logs in."],
        ),
        ("<dl><dt class='menu'>menu(items)</dt><dd class='widget'>Shows it.</dd></dl>", ["menu(items)", "Shows it."]),
        *(
            (f'<section id="{name}"><h2>{heading}</h2><p>{WORDS}</p></section>', [heading, WORDS.strip()])
            for name, heading in [
                ("cookies", "Cookies"),
                ("date-and-time", "Date and time"),
                ("date-objects", "Date objects"),
                ("share", "Share a fox"),
                ("comments", "Comments"),
                ("login", "Login"),
                ("menu", "Menu"),
                ("author", "Author"),
                ("widget", "Widget"),
                ("related", "Related"),
                ("sidebar", "The sidebar"),
            ]
        ),
        *(
            (f'<div class="{name}"><h3>About it</h3><p>{WORDS}</p></div>', ["About it", WORDS.strip()])
            for name in ("comment-syntax", "print", "share", "login-form", "ad", "footer", "widget", "related-work")
        ),
        *(
            (
                f'<h2 id="{name}">The {name}</h2><p>{WORDS}</p><pre>{name}.open()</pre>',
                [f"The {name}", f"{name}.open()"],
            )
            for name in ("comments", "date", "related", "menu", "share", "newsletter", "tags")
        ),
    ],
)
def test_class_names_alone_do_not_omit_content(markup: str, expected: list[str]) -> None:
    text = text_of(markup)
    assert [one for one in expected if one not in text] == []


@pytest.mark.parametrize("kind", ["article", "div"])
def test_omitted_text_is_counted_in_a_note(kind: str) -> None:
    links = "".join(f"<li><a href=/{number}>Elsewhere foxes sing</a>" for number in range(10))
    page = f"<title>F</title><body><nav><ul>{links}</ul></nav><{kind}><h1>Foxes</h1>{LONG * 4}</{kind}>"
    [note] = read_html(page, URL, "text", None).notes
    assert re.fullmatch(r"Left out around the content: 200 of [\d,]+ characters \(nav 200\)\.", note)


def test_an_anchor_without_href_is_not_a_link() -> None:
    text = text_of("<a>They dig dens.</a><h2><a>In spring</a></h2>They have cubs.")
    assert all(part in text for part in ("They dig dens.", "In spring", "They have cubs."))


def test_a_short_page_is_content_except_its_landmarks() -> None:
    page = "<title>F</title><body><nav><a href=/a>Home</a></nav><p>One fox.</p><p><a href=/b>Two</a></p>"
    assert read_html(page, URL, "text", None).text == "One fox.\n\nTwo"


@pytest.mark.parametrize("share", [50, pytest.param(1, marks=pytest.mark.slow)])
def test_a_page_of_many_small_parts_is_read(share: int) -> None:
    for part, times, around in [
        ("<div>x</div>", 38_000, ""),
        ("<b>x</b>y", 3_000, "<p>"),
        ("<div class=x><h2>x</h2></div>", 15_000, ""),
        ("<article class=x>x</article>", 30_000, ""),
        ("<h1>x</h1>", 30_000, ""),
        ("<i>x</i>", 30_000, "<div>" * 90),
        ("<div><a href=/x>xxxxxxxxxxxxxxxx</a></div>", 15_000, ""),
    ]:
        assert text_of(around + part * (times // share))


TAGS = st.sampled_from(
    re.findall(
        r"\w+",
        "div p section article main nav footer header aside ul ol table tr dl dt dd h1 h2 h3 pre blockquote a b span"
        " form button label select figure figcaption details summary center textarea",
    )
)
ITEMS = {"table": "td", "tr": "td", "dl": "dd", "select": "option"}
"""The child element for text, of elements that have no text of their own."""
NODES = st.recursive(st.integers(3, 300), lambda inner: st.tuples(TAGS, st.lists(inner, max_size=8)), max_leaves=60)
Node = int | tuple[str, list["Node"]]


def markup_of(node: Node, words: list[str]) -> str:
    """Returns a tree as HTML. Each leaf is a new word, repeated to a length, which is appended to `words`."""
    if isinstance(node, int):
        words.append(f"w{len(words):03}" * (1 + node // 4) + "e")
        return f" {words[-1]} "
    tag, inner = node
    item = ITEMS.get(tag)
    parts = [markup_of(one, words) for one in inner]
    return f"<{tag}>{''.join(f'<{item}>{part}</{item}>' if item else part for part in parts)}</{tag}>"


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(NODES, max_size=12))
def test_all_text_is_returned_or_counted(nodes: list[Node]) -> None:
    words: list[str] = []
    body = "".join(markup_of(node, words) for node in nodes)
    page = read_html(f"<title>Foxes</title><body>{body}", URL, "text", None)
    seen = re.sub(r"\s", " ", page.text)
    lost = sum(len(word) for word in words if word not in seen)
    counted = [int(size.replace(",", "")) for size in re.findall(r"[a-z] ([\d,]+)[,)]", " ".join(page.notes))]
    assert lost <= sum(counted)


def test_the_text_of_a_page_of_fields_alone_is_counted() -> None:
    page = read_html("<title>Den</title><body><textarea>Dear fox, come home.</textarea>", URL, "markdown", None)
    assert page.notes[0].startswith("Only 0 of 20 characters are kept")
    assert "(fields 20)" in page.notes[0]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<pre>dig()</pre>", "dig()"),
        ("<blockquote>No ship is late.</blockquote>", "No ship is late."),
        ("<details><summary>More</summary><p>Two piers.</p></details>", "Two piers."),
        ("<table><tr><th>Year</th><td>1850</td></tr></table>", "1850"),
    ],
)
def test_a_short_end_of_an_article_is_content(markup: str, expected: str) -> None:
    page = f"<title>Foxes</title><body><main><article><h1>Foxes</h1>{LONG * 5}{markup}</article></main>"
    assert expected in read_html(page, URL, "text", None).text


@pytest.mark.parametrize("tag", ["p", "div", "li", "blockquote", "h3"])
def test_a_long_text_of_similar_parts_is_complete(tag: str) -> None:
    ending = "tells of the weather, of the sea and of what the boats brought home"
    parts = [f"Paragraph number {number} {ending}." for number in range(300)]
    marked = "".join(f"<{tag}>{part}</{tag}>" for part in parts)
    page = f"<title>Boats</title><main><article><h1>Boats</h1>{marked}</article></main><footer>Copyright</footer>"
    text = read_html(page, URL, "text", None).text
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize("linked", [False, True])
def test_a_table_between_paragraphs_is_content(linked: bool) -> None:
    labels = ("Description:", "Syntax:", "Default:", "Context:", "Status:", "Module:")
    values = ("The group that answers requests", "Group {0}-group", "Group #-1", "server config", "Base", "mod_{0}")
    sections = "".join(
        f"<div><h2>{name.title()}</h2><table>"
        + "".join(
            f"<tr><th>{f'<a href=dict.html>{label}</a>' if linked else label}</th><td>{value.format(name)}</td></tr>"
            for label, value in zip(labels, values, strict=True)
        )
        + f"</table><p>{WORDS * 4}</p></div>"
        for name in ("chroot", "group", "suexec", "user")
    )
    page = f"<title>Module</title><div><p>Modules | FAQ</p></div><h1>Module</h1><p>{WORDS * 8}</p>{sections}"
    text = read_html(page, URL, "text", None).text
    assert [text.count(label) for label in labels] == [4] * len(labels)
    assert [value for value in values if value.format("user") not in text] == []


def test_a_navigation_table_around_a_manual_is_omitted() -> None:
    table = (
        "<div><hr><table><tr><td><a href=a>Prev</a></td><td><a href=u>Up</a></td><td><a href=n>Next</a></td></tr>"
        "<tr><td>10.6. Selections of Columns</td><td><a href=i>Home</a></td><td>11.1. Introduction</td></tr>"
        "</table></div>"
    )
    text = read_html(f"<title>Foxes</title><div><h1>Foxes</h1>{LONG}</div>{table}", URL, "text", None).text
    assert ("quick brown" in text, "Selections" in text) == (True, False)


@pytest.mark.parametrize(
    "quote",
    [
        "<blockquote><p>A crust is dried dough.</p></blockquote>",
        "<aside><div>Rye:</div><blockquote><p>A crust is dried dough.</p></blockquote></aside>",
        f"<aside><div>Rye:</div><blockquote><p>A crust is dried dough. {WORDS}</p></blockquote></aside>",
    ],
)
def test_a_quote_between_paragraphs_is_content_with_its_author(quote: str) -> None:
    page = f"<title>Bread</title><div><h1>Bread</h1><p>{WORDS * 3}</p>{quote}<p>So says my baker.</p></div>"
    text = read_html(page, URL, "text", None).text
    assert ("dried dough" in text, "Rye" in text) == (True, "Rye" in quote)


def test_a_section_of_links_in_a_manual_is_content() -> None:
    names = ("Name", "Synopsis", "Options", "Status", "Examples")
    sections = "".join(
        f"<section><h2>{name}</h2><p>{WORDS}</p><pre>trowel -{name[0]}</pre></section>" for name in names
    )
    links = '<section><h2>See also</h2><p><a href="/split.1">split(1)</a>, <a href="/dd.1">dd(1)</a></p></section>'
    text = read_html(f"<title>trowel(1)</title><div>{sections}{links}</div>", URL, "text", None).text
    assert ("See also" in text, "dd(1)" in text) == (True, True)


@pytest.mark.parametrize(
    "heading",
    [
        "<h2>Dens <span>[<a href=/e>Edit</a> | <a href=/s>Edit source</a>]</span></h2>",
        "<div><h2>Dens</h2><span>[<a href=/e>Edit</a>]</span></div>",
    ],
)
def test_edit_links_of_section_headings_are_omitted(heading: str) -> None:
    text = text_of(f"{heading}<p>{WORDS}</p>{heading}")
    assert text.count("Dens") == 2
    assert "Edit" not in text


@pytest.mark.parametrize(
    ("block", "code"),
    [
        (
            "<div><div>install.sh</div><div><pre>{}</pre><button>Copy</button></div></div>",
            "npm install foxes && npx foxes dig",
        ),
        ("<div><pre><a href=/dig>{}</a></pre></div>", "dig"),
    ],
)
def test_code_in_its_own_block_is_content(block: str, code: str) -> None:
    assert code in text_of(block.format(code)).splitlines()


def test_the_label_of_a_collapsed_block_is_content() -> None:
    label = "<div role=button aria-controls=a aria-expanded=false><a>How long?</a></div>"
    text = text_of(f"<div>{label}<div id=a style='display:none'><p>Three years long.</p></div></div>")
    assert [phrase for phrase in ("How long?", "Three years long.") if phrase not in text] == []


def test_a_table_of_links_with_headers_is_content() -> None:
    rows = "".join(f"<tr><td><a href=/{n}>Den {n}</a><td><a href=/{n}.pdf>Plan of den {n}</a>" for n in range(6))
    text = text_of(f"<table><tr><th>Name<th>File{rows}</table>")
    assert [phrase for phrase in ("Name", "Den 0", "Plan of den 5") if phrase not in text] == []


def test_the_last_of_many_similar_blocks_is_content() -> None:
    items = "".join(
        f"<div class=q><span>“Saying {n} is wise.”</span><span>by <small>Author {n}</small></span>"
        f"<div>Tags: <a href=/t>life</a></div></div>"
        for n in range(6)
    )
    text = read_html(f"<title>Sayings</title>{items}", URL, "text", None).text
    assert [n for n in range(6) if f"Author {n}" not in text] == []


def test_a_term_keeps_a_definition_of_links() -> None:
    text = text_of(
        "<dl><dt>Tags:</dt><dd><ul><li><a href=/a>dens</a></li><li><a href=/b>snow</a></li></ul></dd></dl>"
    )
    assert [word for word in ("Tags:", "dens", "snow") if word not in text] == []


def test_a_list_introduced_by_a_sentence_is_content() -> None:
    links = "".join(f"<li><a href=/{name}>{name}</a></li>" for name in ("Dens", "Snow", "Food"))
    for items in (f"<ul>{links}</ul>", f"<div><div><ol>{links}</ol></div></div>"):
        assert "Dens" in text_of(f"<p>These pages say more:</p>{items}")


@pytest.mark.parametrize(
    "steps",
    [
        ["Whisk them."],
        [{"@type": "HowToStep", "text": "<b>Whisk</b> them."}],
        [{"@type": "HowToSection", "itemListElement": [{"name": "Whisk them"}]}],
        "<ol><li>Whisk them</li><li>Serve</li></ol>",
    ],
)
@pytest.mark.parametrize(
    "markup",
    [
        "<ul><li><a href=/e>2 eggs</a></li><li>½ cup sugar &amp; salt</li></ul><ol><li>Whisk them.</li></ol>",
        "<div><div><div>2</div><div>eggs</div></div><div>½ cup sugar &amp; salt</div></div><div>Whisk them.</div>",
    ],
)
def test_declared_ingredients_and_steps_are_content(markup: str, steps: object) -> None:
    recipe = {"recipeIngredient": ["2 eggs", "½ Cup sugar &amp; salt"], "recipeInstructions": steps}
    links = "".join(f"<div><a href=/{number}>More of fox {number}</a></div>" for number in range(9))
    page = (
        f"<title>Foxes</title><script type=application/ld+json>{json.dumps(recipe)}</script><h1>Foxes</h1>{LONG * 3}"
        f"<div><div><button>Print</button></div>{markup}{links}</div>"
    )
    text = " ".join(read_html(page, URL, "text", None).text.split())
    assert [part for part in ("2", "eggs", "½ cup sugar & salt", "Whisk them.") if part not in text] == []


def test_footnotes_with_references_are_content() -> None:
    notes = "".join(
        f"<li id=n{number}><a href=#r{number}>^</a> <cite>Holm (1994). p. 8{number}.</cite></li>" for number in (1, 2)
    )
    marks = "".join(f"<sup id=r{number}><a href=#n{number}>[{number}]</a></sup>" for number in (1, 2))
    page = f"<title>F</title><h1>Foxes</h1><p>{WORDS * 9}{marks}</p><div><h2>References</h2><ol>{notes}</ol></div>"
    text = read_html(page, URL, "text", None).text
    assert [phrase for phrase in ("References", "p. 81.", "p. 82.") if phrase not in text] == []


def test_a_table_in_a_figure_keeps_its_caption() -> None:
    figure = (
        "<figure><figcaption>Table 1: Dens.</figcaption><table><tr><th>Year<td>1850<tr><th>Dens<td>8</table></figure>"
    )
    sections = (
        f"<section><h2>A</h2><p>{WORDS * 2}</p></section><section><h2>B</h2><p>{WORDS * 3}</p>{figure}</section>"
    )
    text = read_html(f"<title>Foxes</title><h1>Foxes</h1>{sections}", URL, "text", None).text
    assert [phrase for phrase in ("Table 1: Dens.", "1850") if phrase not in text] == []


def test_a_share_line_after_a_text_is_omitted() -> None:
    article = f"<article><h1>Foxes</h1>{LONG * 10}<div><p>Share this:</p></div></article>"
    page = f"<title>Foxes</title><main>{article}</main>"
    assert "Share this:" not in read_html(page, URL, "text", None).text


def test_many_brackets_take_linear_time() -> None:
    assert IN_BRACKETS.fullmatch("[" + "a]1" * 1_000_000 + "x") is None
    assert IN_BRACKETS.fullmatch("[edit]")
    assert IN_BRACKETS.fullmatch("[ 12 ]") is None


@pytest.mark.parametrize("caption", ["Foxes, 1925", "A den", "<a href=/shop>Buy prints of our foxes</a>"])
def test_text_below_a_picture_between_paragraphs_is_its_caption(caption: str) -> None:
    page = f"""<title>Foxes</title><body><main><h1>Foxes</h1><div><div>From the encyclopedia</div><p>{WORDS * 2}</p>
<div class=thumb><div><a href=/fox.html><img alt="" src=/fox.jpg></a><div>{caption}</div></div></div>
<div role=navigation><h2>Contents</h2><ul><li><a href=#work>1 Work</a><li><a href=#tools>2 Tools</a></ul></div>
<h2>Work</h2><p>{WORDS * 2}</p><h2>Tools</h2><p>{WORDS * 2}</p></div></main><footer>Edited in May.</footer>"""
    assert (caption in read_html(page, URL, "text", None).text) is not caption.startswith("<a")


def test_all_cells_of_a_row_are_content() -> None:
    rows = "".join(
        f"<tr><td><a href=/count>Fox::count</a></td><td><a href=#{name}>{name}</a> (int days, bool wild)</td></tr>"
        for name in ("foxes", "dens", "litters")
    )
    table = f"<table><tr><td colspan=2><h2>Functions</h2></td></tr>{rows}</table>"
    assert text_of(table).count("Fox::count") == 3


def test_all_sections_of_api_documentation_are_content() -> None:
    source = "<a href=/source>[src]</a>"
    sections = (
        ("Declaration " + source, "<pre><code>Den* vixen_get_den (Vixen* self)</code></pre>"),
        (
            "Description " + source,
            "<p>Gets the den in which a vixen lives.</p><p>If it is in no den, there is none.</p>",
        ),
        (
            "Return value",
            "<div><p>Type: <a href=/den><code>FoxDen</code></a></p><p>The den of <code>self</code>.</p></div>",
        ),
    )
    content = "".join(f"<div><h4>{heading}</h4><div class=block>{text}</div></div>" for heading, text in sections)
    links = "".join(f"<a href=/{number}>method_{number}</a> " for number in range(9))
    page = f"""<title>Vixen.get_den</title><body><nav><h3>Foxes</h3><p>Version: 4.0</p><div>{links}</div></nav>
<section><header><h3>Method</h3><h1><a href=/>Fox</a> <a href=/vixen>Vixen</a> get_den</h1></header>
<section>{content}</section></section>"""
    text = read_html(page, URL, "text", None).text
    assert [part for part in ("Return value", "Type: FoxDen", "The den of self.") if part not in text] == []
    assert "Version" not in text


@pytest.mark.parametrize(
    ("definition", "signature"),
    [
        (
            "<p><a id={0}>{0}</a> :: <a href=/int>Int</a> -&gt; <a href=/den>Den</a></p>",
            "{0}::Int->Den",
        ),
        (
            '<section id={0}><div><a href="#{0}">Link</a><h1>{0}(Den)</h1></div><a href=/s>[s]</a></section>',
            "{0}(Den)",
        ),
        ('<div id={0}><div>def <b>{0}</b> <a href="#{0}">#</a></div></div>', "def{0}"),
    ],
    ids=["Haddock", "ExDoc", "Crystal"],
)
def test_definitions_that_a_page_links_to_are_content(definition: str, signature: str) -> None:
    names = ("foxOf", "denOf", "cubsOf", "trail")
    synopsis = "".join(f"<li><a href=#{name}>{name}</a></li>" for name in names)
    definitions = [f"<div>{definition.format(name)}<div><p>As of old.</p></div></div>" for name in names]
    note = "<aside><p>Dens are <i>directed</i>.</p></aside>"
    page = f"""<title>Foxes</title><body>
<div><ul><li><a href=/i>Index</a></li></ul><table><tr><td>43</td><td><a href=/c>Contents</a></td></tr></table></div>
<div><p>Foxes</p><div><p>Description</p><p>Dens and cubs.</p></div><ul>{synopsis}</ul>
<div><h1>Documentation</h1>{note.join(definitions)}</div></div>"""
    text = "".join(read_html(page, URL, "text", None).text.split())
    parts = ("Densandcubs.", "Densaredirected.", *map(signature.format, names))
    assert [part for part in parts if part not in text] == []
    assert ("43" in text, "Contents" in text) == (False, False)


def test_the_introduction_of_a_struct_is_content() -> None:
    names = ("type", "direction", "length", "delay", "button", "interval", "level", "attack", "fade")
    rows = "".join(f"<tr><td><a href=/u>Uint16</a></td><td><a href=#{name}>{name}</a></td></tr>" for name in names)
    details = "".join(
        f'<a id={name}></a><h2><a href="#{name}">&#9670;</a> {name}</h2>'
        f"<table><tr><td>Uint16 Fox::{name}</td></tr></table><p>Defined at line 9 of <a href=/f>fox.h</a>.</p>"
        for name in names
    )
    page = f"""<title>Dens: Fox Struct Reference</title><body><div><div>Dens 2.0</div></div>
<div><div><a href=#fields>Data Fields</a></div><div>Fox Struct Reference</div></div>
<div><p>A fox. <a href=#details>More...</a></p><p><code>#include &lt;<a href=/f>fox.h</a>&gt;</code></p>
<table><tr><td colspan=2><h2>Data Fields</h2></td></tr>{rows}</table><h2>Fields</h2>{details}</div>
<hr><address>Generated by 1.9.4</address>"""
    text = read_html(page, URL, "text", None).text
    assert [part for part in ("A fox.", "#include", "Fox::delay", "Fox Struct") if part not in text] == []


def test_a_short_page_beside_a_long_navigation_is_content() -> None:
    links = "".join(f"<li><a href={number}.html>Module{number}</a></li>" for number in range(300))
    main = f"<h1>annotation Flags</h1><h2>Overview</h2><p>{WORDS}</p><pre>enum Fox\n  Red\nend</pre><p>{WORDS}</p>"
    page = f"<title>Flags - Foxes</title><body><div><ul>{links}</ul></div><div>{main}</div>"
    text = read_html(page, URL, "text", None).text
    assert ("enum Fox" in text, "quick brown" in text, "Module7" in text) == (True, True, False)
