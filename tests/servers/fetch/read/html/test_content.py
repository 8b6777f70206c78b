"""The main content of a page is whole: no sentence has a hole, no part of a text is left behind, and nothing that
stands around it comes with it."""

import re

import pytest

from servers.fetch.read.html.page import read_html

URL = "https://example.com/docs/page.html"
WORDS = "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all. "
LONG = f"<p>{WORDS * 4}</p>"


def text_of(inside: str) -> str:
    """The main content of an article between a menu and a footer."""
    page = f"""<!doctype html><title>Foxes</title><body><nav><ul><li><a href="/">Home</a></ul></nav>
<main><article><h1>Foxes</h1>{LONG}{inside}{LONG}</article></main>
<footer><p>Copyright The Paper. <a href="/terms">Terms</a></p></footer>"""
    return read_html(page, URL, "text", None).text


def test_a_sentence_has_no_hole() -> None:
    for sentence, said in [
        ("It opens at <time>half past nine</time> today.", "It opens at half past nine today."),
        ("The sum is <output>forty-two</output> of them.", "The sum is forty-two of them."),
        ("It prints <samp>no answer</samp> and ends.", "It prints no answer and ends."),
        ("Fill in <label>your name</label> and wait.", "Fill in your name and wait."),
        ("Press <button>Save</button> before you leave.", "Press Save before you leave."),
        ("Here <math><mi>a</mi></math> is a length.", "Here a is a length."),
        ("It <span class='info-bar'>never</span> ends.", "It never ends."),
        ("A <span class='rating'>good</span> book.", "A good book."),
    ]:
        assert said in text_of(f"<p>{sentence}</p>")


def test_bare_text_between_paragraphs_stays() -> None:
    said = [f"Said before paragraph {number}, and in none." for number in range(5)]
    page = f"<title>F</title><body><div>{''.join(f'{one}<p>More.</p>' for one in said)}{LONG}</div>"
    text = read_html(page, URL, "text", None).text
    assert [one for one in said if one not in text] == []
    text = text_of(f"{LONG}<div>Said before it.<p>More.</p>And after it.</div>")
    assert "Said before it." in text
    assert "And after it." in text


def test_a_block_between_paragraphs_stays() -> None:
    for inside, said in [
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
        assert said in text_of(inside)


@pytest.mark.parametrize(
    "question",
    [
        "<details><summary>{}</summary>{}</details>",
        "<div class='item'><h2><button type=button>{}</button></h2><div class=collapse>{}</div></div>",
        "<div class='tab'><label>{}</label><div>{}</div></div>",
        "<div class='item'><h3 class='navbar-anchor'>{}</h3>{}</div>",
    ],
)
def test_every_question_of_an_faq_stays(question: str) -> None:
    asked = [f"Is this question number {number}?" for number in range(4)]
    items = "".join(question.format(one, LONG) for one in asked)
    text = read_html(f"<title>FAQ</title><body><h1>FAQ</h1><div class='faq'>{items}</div>", URL, "text", None).text
    assert [one for one in asked if one not in text] == []


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
def test_all_parts_of_a_kind_are_content(part: str) -> None:
    parts = "".join(part.format(f"<p>This is part {number}.</p>{LONG}") for number in range(5))
    text = read_html(f"<title>Foxes</title><body><h1>Foxes</h1><div>{parts}</div>", URL, "text", None).text
    assert [number for number in range(5) if f"This is part {number}." not in text] == []


def test_a_sentence_under_the_headline_stays() -> None:
    lead = "Foxes are said to be clever, and some of them are cleverer than that."
    page = f"<title>F</title><body><header><h1>Foxes</h1><p class=standfirst>{lead}</p></header><article>{LONG * 2}"
    assert lead in read_html(page, URL, "text", None).text


def test_what_stands_around_content_stays_out() -> None:
    parts = [
        "<nav><a href=/a>Elsewhere</a> and back</nav>",
        "<div class='cookie-banner'><p>Elsewhere we take cookies, if you let us.</p></div>",
        "<section class='comments'><p>Elsewhere I read that this is wrong.</p></section>",
        "<div class='related-posts'><p>Elsewhere the foxes sing at night.</p></div>",
        "<div class='sidebar'><p>Elsewhere you find our other pages.</p></div>",
        "<form><input type=email><button>Elsewhere</button></form>",
        "<p>Read more: <a href=/a>Elsewhere foxes sing at night</a></p>",
        "<aside><h3><a href=/a>Elsewhere foxes sing</a></h3><p>They do it at night, and badly.</p></aside>",
        "<div>" + "<div><a href=/a>Elsewhere foxes sing</a><p>At night.</p></div>" * 3 + "</div>",
        "<figure><img src=a><figcaption>Elsewhere a fox</figcaption></figure>",
        "<p><b>See more</b>: <a href=/a>Elsewhere foxes sing at night</a></p>",
        "<p>(<a href=/a>Elsewhere foxes sing at night</a>)</p>",
        "<p><b>Elsewhere</b></p><p>" + "<a href=/a>Foxes sing at night</a> [<b>VIDEO]<br></b>" * 3 + "</p>",
        "<p>Elsewhere you may read ...</p><p>" + "<a href=/a>Foxes sing at night</a><br>" * 3 + "</p>",
        "<strong>Elsewhere<br>" + "<a href=/tag/fox rel=tag>foxes</a>, " * 4 + "</strong>",
        "<div class='gallery-overlay'><div>Elsewhere a fox</div></div>",
    ]
    assert [part for part in parts if "Elsewhere" in text_of(part)] == []


def test_a_label_of_nothing_stays_out() -> None:
    for label in ("Advertisement", "ADVERT", "Anzeige:", "Story continues below advertisement"):
        assert label not in text_of(f"<div><center><span>{label}</span><br><script>x</script></center></div>")
        assert f"An {label} says so." in text_of(f"<p>An {label} says so.</p>")


def test_a_heading_of_what_is_no_content_stays_out() -> None:
    page = f"<title>F</title><body><article><h1>Foxes</h1>{LONG * 2}<h3>Tell us</h3>"
    assert "Tell us" not in read_html(f"{page}<p class=comments>Nobody did.</p></article>", URL, "text", None).text
    assert "Tell us" in read_html(f"{page}<p>{WORDS}</p></article>", URL, "text", None).text


def test_what_opens_over_a_name_is_no_part_of_its_sentence() -> None:
    title = "<a href=/a>Elsewhere foxes sing at night</a> "
    opened = (
        f"<span class=block><span><img src=/a><a href=/ada>Ada Fox</a>{title * 3}<a href=/ada>MORE</a></span></span>"
    )
    text = text_of(f"<p>It was <span><a href=/ada>Ada Fox</a>{opened}</span> (R) who sang.</p>")
    assert "It was Ada Fox (R) who sang." in text


def test_links_within_a_text_stay() -> None:
    for said in (
        "<p>The ones are <a href=/a>foxes that sing at night</a><br>and dogs</p>",
        "<p>It is told at<br>" + "<a href=/a>https://example.com/foxes/singing</a><br>" * 3 + "</p>",
        "<p><a href=https://example.org/foxes>https://example.org/foxes/singing</a></p>",
        "<p>Good day <a href=/t/a rel=tag>#fox</a> <a href=/t/b rel=tag>#dog</a> <a href=/t/c rel=tag>#day</a></p>",
        "<p>He said:</p><p>(<a href=/a>Foxes do sing at night</a>)</p>",
        "<p>It is <span><a href=/a>a fox that sings</a>, <a href=/b>a dog that barks</a></span> and so on.</p>",
    ):
        first = re.sub(r"<[^>]*>", " ", said).split()[0]
        assert re.search(rf"(?m)^{re.escape(first)}", text_of(said))


def test_teasers_of_other_pages_are_no_further_parts() -> None:
    teaser = (
        "<article><h2><a href=/other>Elsewhere foxes sing</a></h2><p>Every night, until somebody wakes.</p></article>"
    )
    page = f"<title>Foxes</title><body><h1>Foxes</h1><article><h2>Foxes</h2>{LONG * 2}</article>{teaser * 3}"
    assert "Elsewhere" not in read_html(page, URL, "text", None).text


@pytest.mark.parametrize("share", [50, pytest.param(1, marks=pytest.mark.slow)])
def test_h6_a_page_of_many_small_parts_is_read(share: int) -> None:
    for part, times, around in [
        ("<div>x</div>", 38_000, ""),
        ("<b>x</b>y", 3_000, "<p>"),
        ("<div class=x><h2>x</h2></div>", 15_000, ""),
        ("<article class=x>x</article>", 30_000, ""),
        ("<h1>x</h1>", 30_000, ""),
        ("<i>x</i>", 30_000, "<div>" * 90),
        ("<div><a href=/x>xxxxxxxxxxxxxxxx</a></div>", 15_000, ""),
    ]:
        assert "quick brown" in text_of(around + part * (times // share))
