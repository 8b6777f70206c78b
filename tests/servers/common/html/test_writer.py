"""HTML as Markdown and as plain text: blocks and inline elements."""

import textwrap

import pytest

from servers.fetch.read.html.page import read_html
from tests.servers.common.html.marked_pages import MILL, PAGES, WHEEL, MarkedPage

URL = "https://example.com/docs/page.html"


def markdown(body: str) -> str:
    return read_html(f"<body>{body}</body>", URL, "markdown", "body").text


def plain(body: str) -> str:
    return read_html(f"<body>{body}</body>", URL, "text", "body").text


def lines(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def test_blocks_and_inline_elements_become_markdown():
    rows = [
        ("<h2>One</h2><p>two\n three</p>", "## One\n\ntwo three"),
        ("one<br>two<br><br>three", "one  \ntwo\n\nthree"),
        ("<p>a <b>bold </b>word, <i>slanted</i>, <del>gone</del></p>", "a **bold** word, *slanted*, ~~gone~~"),
        ("<p>use <code>a `b` c</code></p>", "use ``a `b` c``"),
        ("<p>10<sup>6</sup> of H<sub>2</sub>O</p>", "10^6 of H2O"),
        ("<blockquote><p>one</p><p>two</p></blockquote>", "> one\n>\n> two"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("<dl><dt>Term<dd>what it means</dl>", "**Term**\n\n: what it means"),
        ("<dl><dt>A<dt>B<dd>one<dd>two<p>2</dl>", "**A**\n\n**B**\n\n: one\n\n: two\n\n  2"),
        ("<details><summary><h2>Den</h2></summary>dug</details>", "## Den\n\ndug"),
        ("<h2><a href=/x>Linked</a></h2>", "## [Linked](https://example.com/x)"),
        ("<a href=/x><div><h3>Card</h3><p>its text</p></div></a>", "### [Card](https://example.com/x)\n\nits text"),
        ("<ul><li><input type=checkbox checked> done<li><input type=checkbox> to do</ul>", "- [x] done\n- [ ] to do"),
        ("<math alttext='a^2'><mi>a</mi></math>", "$a^2$"),
    ]
    assert [(body, markdown(body)) for body, _ in rows] == rows


def test_links_are_absolute():
    rows = [
        ("/a", "https://example.com/a"),
        ("../b?c=d", "https://example.com/b?c=d"),
        ("other.html#part", "https://example.com/docs/other.html#part"),
        ("//cdn.example.net/x", "https://cdn.example.net/x"),
        ("mailto:a@example.com", "mailto:a@example.com"),
        (" https://e.org/a\n b (c) ", "https://e.org/a%20b%20%28c%29"),
    ]
    assert [(href, markdown(f'<a href="{href}">word</a>')) for href, _ in rows] == [
        (href, f"[word]({url})") for href, url in rows
    ]


def test_links_without_a_usable_url_become_their_text():
    wrong = ("javascript:alert(1)", "java\nscript:alert(1)", " data:text/html,x", "vbscript:x", "file:///x", "#", "")
    assert {markdown(f'<a href="{href}">word</a>') for href in wrong} == {"word"}


def test_links_within_the_page_become_their_text_and_permalinks_are_removed():
    assert (
        markdown('<h2>Part<a href="#part">¶</a></h2><p>see <a href="page.html#part">above</a>')
        == "## Part\n\nsee above"
    )


def test_links_are_relative_to_the_base_of_the_page():
    html = "<head><base href='https://cdn.example.net/v2/'></head><body><a href=x>word</a></body>"
    assert read_html(html, URL, "markdown", "body").text == "[word](https://cdn.example.net/v2/x)"


def test_texts_can_not_become_markup():
    rows = [
        ("<a href=/x>a](https://evil.example) [b</a>", r"[a\](https://evil.example) \[b](https://example.com/x)"),
        ("<p>[a](https://evil.example)</p>", r"[a\](https://evil.example)"),
        ('<img src=/i.png alt="a](x) ![b">', r"![a\](x) !\[b](https://example.com/i.png)"),
        ("<p># no heading</p>", r"\# no heading"),
        ("<p>1. no item</p>", r"1\. no item"),
        ("<p>- no item</p><p>&gt; no quote</p>", "\\- no item\n\n\\> no quote"),
        ("<p>```</p>", r"\`\`\`"),
        ("<p>*not bold* and snake_case 2 * 3</p>", r"\*not bold\* and snake_case 2 * 3"),
        ("<p>&lt;script&gt; a &lt; b</p>", r"\<script> a < b"),
    ]
    assert [(body, markdown(body)) for body, _ in rows] == rows


def test_lists_are_nested():
    body = "<ol start=3><li>three<ul><li>a<li><p>b</p><p>c</p></ul><li>four</ol>"
    assert markdown(body) == lines("""
        3. three
           - a
           - b

             c
        4. four
        """)


def test_a_list_in_a_list_outside_items_is_kept():
    assert markdown("<ul><li>a</li><ul><li>b</li></ul></ul>") == "- a\n  - b"


def test_code_keeps_its_language_and_lines():
    code = "if a:\n    b = '*'  # `c`"
    for body, language in [
        ("<pre><code class='language-python'>{}</code></pre>", "python"),
        ("<pre class='brush: js; toolbar: false'>{}</pre>", "js"),
        ("<div class='highlight-rust notranslate'><div class=highlight><pre>{}</pre></div></div>", "rust"),
        ("<div class='highlight highlight-source-shell'><pre>{}</pre></div>", "shell"),
        ("<pre data-lang=C++>{}</pre>", "c++"),
        ("<pre class='sourceCode haskell'>{}</pre>", "haskell"),
        ("<pre><code class=language-none>{}</code></pre>", ""),
        ("<pre>{}</pre>", ""),
    ]:
        assert markdown(body.format(code)) == f"```{language}\n{code}\n```"


def test_code_with_a_fence_gets_a_longer_one_and_loses_line_numbers():
    body = "<pre><span class=lineno>1</span>```<br>x</pre>"
    assert markdown(body) == "````\n```\nx\n````"


def test_tables_with_caption_links_and_spans_become_markdown():
    body = """<table><caption>Prices</caption><tr><th>What<th>Price</tr>
        <tr><td rowspan=2>a | b<td><a href=/1>1</a><tr><td>2<tr><td colspan=2>all</table>"""
    assert markdown(body) == lines(r"""
        Prices

        | What | Price |
        | --- | --- |
        | a \| b | [1](https://example.com/1) |
        |  | 2 |
        | all |  |
        """)


def test_a_table_without_a_head_gets_an_empty_head():
    assert markdown("<table><tr><td>a<td>b<tr><td>c<td>d</table>") == "|  |  |\n| --- | --- |\n| a | b |\n| c | d |"


def test_a_layout_table_is_written_as_its_content():
    body = "<table><tr><td><h1>Title</h1><p>one</p><td><p>two</p></table>"
    assert markdown(body) == "# Title\n\none\n\ntwo"


def test_content_of_a_list_outside_items_is_kept():
    rows = [
        ("<ul>Before<li>a</li>and <b>after</b><li>b</ul>", "Before\n- a\n  and **after**\n- b"),
        ("<ol><li>a<p>b</p></li><a href=/x>c</a><li>d</ol>", "1. a\n\n   b\n  [c](https://example.com/x)\n2. d"),
        ("<ul>alone</ul>", "alone"),
        ("<ol reversed><li>a<li>b</ol>", "2. a\n1. b"),
        ("<ol reversed start=9><li>a<li>b<li value=3>c<li>d</ol>", "9. a\n8. b\n3. c\n2. d"),
        ("<ul><li>a<ul><li>b</ul><ul><li>c</ul></ul>", "- a\n  - b\n  - c"),
    ]
    assert [(body, markdown(body)) for body, _ in rows] == rows


def test_pictures_become_markdown_images():
    rows = [
        ("<img src=a.png alt='a cat'>", "![a cat](https://example.com/docs/a.png)"),
        ("<img src=dot.gif alt=''>", ""),
        ("<img src='data:image/gif;base64,R0' data-src=/lazy.png alt=late>", "![late](https://example.com/lazy.png)"),
        ("<img src=/dot.gif data-src=/lazy.png alt=late>", "![late](https://example.com/lazy.png)"),
        ("<img src=/dot.gif data-srcset='/s.png 1x, /l.png 2x' alt=late>", "![late](https://example.com/s.png)"),
        ("<img src=/a.png data-lazy=true data-src='/{width}.png' alt=A>", "![A](https://example.com/a.png)"),
        ("<img srcset='/s.png 1x, /l.png 2x' alt=set>", "![set](https://example.com/s.png)"),
        (
            "<picture><source srcset='/s.png 1x, /l.png 2x'><img alt=set></picture>",
            "![set](https://example.com/s.png)",
        ),
        (
            "<figure><img src=/a.png alt='a cat'><figcaption>Our \"cat\"</figcaption></figure>",
            r'![a cat](https://example.com/a.png "Our \"cat\"")',
        ),
        (
            "<figure><img src=/a.png><figcaption>Our cat</figcaption></figure>",
            "![Our cat](https://example.com/a.png)",
        ),
        (
            "<figure><img src=/a.png alt=cat><figcaption>By <a href=/ann>Ann</a></figcaption></figure>",
            "![cat](https://example.com/a.png)\n\nBy [Ann](https://example.com/ann)",
        ),
        (
            "<figure><figcaption><img src=/a.png alt=cat> By <a href=/ann>Ann</a></figcaption></figure>",
            "![cat](https://example.com/a.png) By [Ann](https://example.com/ann)",
        ),
        ("<a href=/big><img src=/a.png alt=cat></a>", "[![cat](https://example.com/a.png)](https://example.com/big)"),
    ]
    assert [(body, markdown(body)) for body, _ in rows] == rows


def test_plain_text_has_the_content_without_markup():
    body = """<h2>One</h2><p>A <b>bold</b> <a href=/x>link</a> *</p><ul><li>a<li>b</ul>
        <table><tr><th>k<th>v<tr><td>1<td>2</table><pre>x = 1</pre><blockquote>q</blockquote><img src=a alt=b>"""
    assert plain(body) == "One\n\nA bold link *\n\n- a\n- b\n\nk | v\n1 | 2\n\nx = 1\n\nq"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_markdown_of_a_page_has_its_marked_pieces(page: MarkedPage) -> None:
    body = page.html.replace("{MILL}", MILL).replace("{WHEEL}", WHEEL)
    html = f"<html lang=en><head><title>x</title></head><body>{body}</body></html>"
    text = read_html(html, "https://example.com/docs/page", "markdown", "body").text
    place = 0
    for piece in page.has:
        assert piece in text[place:]
        place = text.index(piece, place) + len(piece)
    assert [piece for piece in page.lacks if piece in text] == []
