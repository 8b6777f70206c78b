"""A whole HTML page: main content, sections, formats, and invalid or hostile pages."""

import json

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.read.html.page import read_html, read_html_page
from servers.fetch.read.page import Format, Kind, Page
from tests.servers.fetch.bodies import source

URL = "https://example.com/docs/page.html"
WORDS = "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all. " * 4
ARTICLE = f"""<!doctype html><html lang="en"><head><title>Foxes and dogs – The Paper</title>
<meta name="description" content="About foxes."><meta name="author" content="A. Writer">
<meta property="og:site_name" content="The Paper"><meta property="og:title" content="Foxes and dogs">
<meta property="article:published_time" content="2026-01-02T03:04:05Z">
<link rel="canonical" href="/foxes"><link rel="alternate" type="application/rss+xml" title="News" href="/feed">
<script type="application/ld+json">{{"@type": "Article", "dateModified": "2026-02-03"}}</script>
<script id="__NEXT_DATA__" type="application/json">{{"props": [1, 2]}}</script></head>
<body><nav><ul><li><a href="/">Home</a><li><a href="/news">News</a><li><a href="/sport">Sport</a></ul></nav>
<main><article><h1>Foxes and dogs</h1><p>{WORDS}<a href="/more">Read more of it</a>.</p>
<figure><img src="/fox.jpg" alt="A fox"><figcaption>A fox, jumping</figcaption></figure>
<h2 id="how">How they jump</h2><p>{WORDS}</p><pre><code class="language-py">jump(dog)</code></pre>
<h3>Over</h3><blockquote><p>{WORDS}</p></blockquote>
<h2>Why</h2><p>{WORDS}</p><table><tr><th>Fox</th><th>Dog</th></tr><tr><td>quick</td><td>lazy</td></tr></table>
</article></main><aside class="sidebar"><h4>Most read</h4><ul><li><a href="/1">Another story</a></ul></aside>
<footer><p>Copyright The Paper. <a href="/terms">Terms</a></p></footer></body></html>"""


def read(html: str = ARTICLE, format: Format = "markdown", section: str | None = None) -> Page:
    return read_html(html, URL, format, section)


def test_main_content_becomes_markdown():
    words = WORDS.strip()
    assert read().text == "\n\n".join(
        [
            "# Foxes and dogs",
            f"{words} [Read more of it](https://example.com/more).",
            '![A fox](https://example.com/fox.jpg "A fox, jumping")',
            "## How they jump",
            words,
            "```py\njump(dog)\n```",
            "### Over",
            f"> {words}",
            "## Why",
            words,
            "| Fox | Dog |\n| --- | --- |\n| quick | lazy |",
        ]
    )


def test_main_content_becomes_text():
    text = read(format="text").text
    assert text.startswith("Foxes and dogs\n\nThe quick")
    assert "Read more of it." in text
    assert not any(one in text for one in ("Sport", "Copyright", "https:", "##"))


def test_a_picture_around_the_content_is_omitted():
    page = read(ARTICLE.replace("<nav>", "<header><img src=/logo.png alt=Logo></header><nav>"))
    assert "Logo" not in page.text


def test_metadata_is_extracted_from_a_page():
    metadata = read().metadata
    assert metadata._asdict() == {
        "title": "Foxes and dogs – The Paper",
        "description": "About foxes.",
        "language": "en",
        "author": "A. Writer",
        "canonical": "https://example.com/foxes",
        "published": "2026-01-02T03:04:05Z",
        "site": "The Paper",
    }


def test_the_metadata_format_has_dates_open_graph_feeds_and_headings():
    metadata = json.loads(read(format="metadata").text)
    assert metadata["modified"] == "2026-02-03"
    assert metadata["open_graph"] == {"og:site_name": "The Paper", "og:title": "Foxes and dogs"}
    assert metadata["feeds"] == [{"title": "News", "type": "application/rss+xml", "url": "https://example.com/feed"}]
    assert metadata["headings"][1] == {"level": 2, "text": "How they jump", "id": "how"}


def test_the_json_format_lists_the_data_of_a_page():
    assert json.loads(read(format="json").text) == [
        {"type": "application/ld+json", "data": {"@type": "Article", "dateModified": "2026-02-03"}},
        {"type": "application/json", "id": "__NEXT_DATA__", "data": {"props": [1, 2]}},
    ]
    assert len(json.loads(read(format="json", section="#__NEXT_DATA__").text)) == 1


def test_unreadable_data_is_counted():
    html = "<script type=application/json>[1]</script><script type=application/json>{</script><script>f()</script>"
    assert read(html, "json").notes[-1] == "1 more could not be read."


def test_the_json_format_of_a_page_without_data_is_an_error():
    with pytest.raises(FetchError) as failed:
        read("<p>x", "json")
    assert failed.value.code == "not_found"


def test_each_link_is_listed_once_with_its_first_text():
    html = '<a href=/a><img src=i alt="pic] (a"></a><a href=/a>again</a><a href=/b></a><a href=#x>x</a>'
    assert (
        read(html, "links").text
        == "- [pic\\] (a](https://example.com/a)\n- [https://example.com/b](https://example.com/b)"
    )


def test_links_beyond_the_limit_are_counted():
    page = read("".join(f"<a href=/{number}>x</a>" for number in range(1_003)), "links")
    assert len(page.text.splitlines()) == 1_000
    assert page.notes[-1] == "3 more links left out."


def test_the_html_format_is_clean_with_absolute_links():
    html = '<div id=a onclick=x() style="color:red"><script>x</script><a href="/b" data-x=1>c</a><img src=d></div>'
    assert read(html, "html", "#a").text == (
        '<div id="a"><a href="https://example.com/b">c</a><img src="https://example.com/docs/d"></div>'
    )


def test_a_section_is_selected_by_heading_fragment_or_selector():
    for section, begins, has, has_not in [
        ("#how", "## How they jump", "### Over", "## Why"),
        ("how they JUMP", "## How they jump", "### Over", "## Why"),
        ("## Why", "## Why", "| quick |", "Copyright"),
        ("jump", "## How they jump", "jump(dog)", "Home"),
        ("Over", "### Over", "> The quick", "## Why"),
        ("aside", "#### Most read", "Another story", "fox"),
        ("footer a, nav a", "[Home](https://example.com/)", "[Terms]", "fox"),
    ]:
        text = read(section=section).text
        assert text.startswith(begins)
        assert has in text
        assert has_not not in text


def test_a_fragment_selects_the_section_at_its_anchor():
    rows = [
        ("<div><h2 id=a>A</h2></div><p>a<div><h2>B</h2></div><p>b", "#a", "## A\n\na"),
        ("<section id=a><h2>A</h2><p>a</section><p>b", "#a", "## A\n\na"),
        ("<p>x<p><a name=a></a><h2>A</h2><p>a", "#a", "## A\n\na"),
        ("<p>x<span id=a><h2>A</h2></span><p>a<h2>B</h2><p>b", "#a", "## A\n\na"),
        ("<div><span id=a><h2>A</h2></span><p>a<h2>B</h2><p>b</div>", "#a", "## A\n\na"),
        ("<p>x<p><span id=a></span><h2>A</h2><p>a<h2>B</h2>", "#a", "## A\n\na"),
        ("<div><h2 id=a>A</h2>a<div><h2>B</h2>b</div>c</div>", "#a", "## A\n\na"),
        ("<dl><dt id=a>f()<dd>does<dt>g()<dd>not</dl>", "#a", "**f()**\n\n: does"),
        ("<p>x<p id=ä>a", "#%C3%A4", "a"),
    ]
    assert [(html, section, read(html, section=section).text) for html, section, _ in rows] == rows


def test_links_are_relative_to_the_base_and_none_leads_to_the_page_itself():
    html = f'<base href="/else/"><a href="a">A</a><a href="{URL}#top">Top</a>'
    assert read(html, "links").text == "- [A](https://example.com/else/a)"


def test_a_missing_section_is_an_error_that_lists_the_headings():
    with pytest.raises(FetchError) as failed:
        read(section="Nowhere")
    assert (failed.value.code, failed.value.suggestion[:8]) == ("not_found", "Name one")
    assert failed.value.quoted.splitlines() == ["Foxes and dogs", "How they jump", "Over", "Why", "Most read"]


def test_an_empty_long_or_invalid_section_is_an_error():
    for section in (" ", "x" * 501, "[", "a:nope(", "::x", "((((", "*" * 400):
        with pytest.raises(FetchError) as failed:
            read(section=section)
        assert failed.value.code in ("bad_argument", "not_found")
        assert section not in (" ", "x" * 501) or failed.value.code == "bad_argument"


def test_a_page_that_needs_javascript_is_noted():
    for html, wants in [
        ("<body><div id=root></div><script src=/app.js></script>", True),
        ("<body><noscript>You need to enable JavaScript to run this app.</noscript><script>x</script>", True),
        ("<body><script src=/app.js></script>", True),
        (f"<body><div id=root><p>{WORDS}{WORDS}</div><script src=/app.js></script>", False),
        ("<body><p>A short page.</p><script src=/count.js></script>", False),
        (f"<body><p>Shop</p><script>{'draw();' * 300}</script>", True),
        (f"<body><p>{WORDS}</p><script>{'draw();' * 300}</script>", False),
        ("<body><p>A short page.</p>", False),
    ]:
        assert any("JavaScript" in note for note in read(html).notes) is wants, html


def test_the_data_of_a_page_that_needs_javascript_is_noted():
    html = "<div id=__next></div><script id=__NEXT_DATA__ type=application/json>{}</script>"
    pages = {html.format(json.dumps({"text": WORDS * 20})): True, html.format("{}"): False}
    assert {page: any("`json`" in note for note in read(page).notes) for page in pages} == pages


def test_the_title_is_not_repeated():
    html = f"<title>On dogs – Paper</title><body><article><h2>On dogs</h2><p>{WORDS}</p><p>{WORDS}</p></article>"
    assert read(html).text.startswith("## On dogs")
    assert read(html.replace("<h2>On dogs</h2>", "")).text.startswith("# On dogs – Paper\n\nThe quick")


def test_cdata_in_xhtml_is_text():
    script = (
        "<script type='application/ld+json'>/*<![CDATA[*/ {\"@type\": \"Article\"} /*]]>*/</script><script src='x'/>"
    )
    text = "<!-- <![CDATA[ --><p>Write <code><![CDATA[<b> & </b>]]></code> here.</p>"
    body = f"<head><title>T</title>{script}</head><body>{text}</body>"
    page = source("html", f"<html xmlns='http://www.w3.org/1999/xhtml'>{body}</html>")
    page = page._replace(kind=Kind("html", "application/xhtml+xml"))
    assert "Write `<b> & </b>` here." in read_html_page(page).text


def test_minimal_and_odd_pages_are_read():
    for html, text in [
        ("", ""),
        ("   ", ""),
        ("just words", "just words"),
        ("<ul><li>one<li>two</ul>", "- one\n- two"),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("<frameset><frame src=/a name=left></frameset>", "[left](https://example.com/a)"),
        ('<?xml version="1.0" encoding="utf-16"?><html><body><p>h\u00e9</p></body></html>', "h\u00e9"),
        ("<meta charset=utf-16><p>h\u00e9 \u4e2d", "h\u00e9 \u4e2d"),
        ("<p>a\x00b\ud800c\U000f0000d</p>", "abcd"),
        ("<p>un<b>closed <i>all</p></b> over", "un**closed *all***\n\n***over***"),
    ]:
        assert read(html).text.replace("*", "") == text.replace("*", ""), html


def test_a_large_page_with_little_text_is_noted():
    hidden = f'<div data-state="{"x" * 12_000}"></div>'
    [note] = read(f"<p>Please wait.</p>{hidden}").notes
    assert note.startswith("The page shows hardly any text for its size")
    assert read("<p>Please wait.</p>").notes == ()


def test_deep_nesting_is_read():
    for tag in ("div", "ul", "blockquote", "b", "table", "a", "form", "svg", "section"):
        assert "before" in read(f"<body><p>before</p>{f'<{tag}>' * 400}deep").text


def test_text_nested_too_deeply_is_omitted_with_a_note():
    page = read("<body><p>before</p>" + "<div>" * 20_000 + "deep")
    assert page.text == "before"
    assert "left out" in page.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "html",
    [
        "<p>x</p>" * 250_000,
        f'<p title="{"a" * 10_000_000}">x</p>',
        f"<p>x{'&amp;' * 50_000}</p>",
        f"<p>x{'&none;' * 50_000}</p>",
        f"<style>{'.a,' * 200_000}b{{display:none}}</style><p>x",
        f"<style>{'a{' * 200_000}</style><p>x",
        "<table>" + "<tr><td rowspan=65000 colspan=1000>x<td>b" * 3_000,
        "<p>x" + "<br>" * 100_000,
        "<p>x" + "*_`[<" * 100_000,
        "<p>x" + "<" * 500_000,
        f"<p style='{'color:' * 100_000}'>x",
        f"<script type=application/ld+json>{'[' * 100_000}</script><p>x",
    ],
    ids=lambda html: html[:12],
)
def test_hostile_pages_are_read(html):
    assert "x" in read(html).text


def test_a_page_without_a_body_tag_is_read():
    for start in ("<main>", "<article>", "<section>", "<nav>Home</nav>", "<my-page>"):
        page = read(f"<title>B</title><meta name=author content=Ada>{start}<h1>B</h1><p>It takes two days.</p>")
        assert "It takes two days." in page.text
        assert page.metadata.author == "Ada"


def test_the_main_element_is_used_if_no_content_is_detected():
    rows = "".join(f"<tr><td><a href=/{n}>Station {n}</a><td>{n} mm" for n in range(90))
    page = read(f"<body><nav>Home</nav><main><h1>Rain</h1><table>{rows}</table></main><footer>Imprint</footer>")
    assert "Station 89" in page.text
    assert "Imprint" not in page.text


def site_map() -> str:
    topics = "".join(f"<li><a href=/{n}>Topic {n}</a>" for n in range(9))
    parts = "".join(f"<li><h3>Part {n}</h3><ul>{topics}</ul>" for n in range(40))
    return f"<footer><h2>All parts</h2><ul>{parts}</ul></footer>"


def test_a_page_with_much_omitted_text_lists_the_headings_of_it() -> None:
    page = read(f"<title>Foxes</title><main><h1>Foxes</h1><p>{WORDS * 2}</main>{site_map()}")
    assert page.text == f"# Foxes\n\n{(WORDS * 2).strip()}"
    assert any(note.startswith("Only ") for note in page.notes)
    assert (page.omitted_headings[:2], len(page.omitted_headings)) == (("All parts", "Part 0"), 30)


def test_a_page_without_text_returns_its_description() -> None:
    description = ("How the quick brown fox came to jump over the lazy dog. " * 8).strip()
    article = f'{{"@type": "Article", "articleBody": "{description}\\nAnd what the *dog* said."}}'
    head = f'<meta name=description content="{description}"><script type="application/ld+json">{article}</script>'
    page = read_html(f"<html><head>{head}</head><body><div id=root></div>", URL, "markdown", None)
    assert page.text == f"{description}\n\nAnd what the \\*dog\\* said."
    assert any("description in its metadata" in note for note in page.notes)


def test_a_page_with_text_omits_its_description() -> None:
    text = "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all. " * 2
    page = read_html(f"<meta name=description content='Of foxes.'><body><p>{text}", URL, "text", None)
    assert (page.text, page.notes) == (text.strip(), ())


def test_a_page_without_text_and_description_is_noted() -> None:
    for head in ("", "<meta name=description content='Foxes at the best price.'>"):
        page = read_html(f"<html><head>{head}</head><body><div></div></body></html>", URL, "markdown", None)
        assert (page.text, page.notes) == ("", ("The page shows no text.",))
