import json
from html import escape
from pathlib import Path

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.read.feed_page import plain_text, read_feed
from tests.servers.fetch.bodies import source

RSS = """<?xml version="1.0"?>
<rss version="2.0"><channel>
  <title>News &amp; more</title><link>/home</link><description>&lt;b&gt;All&lt;/b&gt; of it</description>
  <language>en</language>
  <item><title>One</title><link>one.html</link><pubDate>Mon, 06 Sep 2021 00:01:00 +0200</pubDate>
    <author>Ann</author>
    <description><![CDATA[<p>Hello <b>world</b></p><p>a &lt; b<script>x()</script></p>]]></description>
  </item>
  <item><title>Two</title><link>javascript:alert(1)</link><pubDate>some day</pubDate></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom">
  <title>Log</title><link href="https://log.example/"/><author><name>Joe</name></author>
  <entry><title type="html">A &lt;i&gt;b&lt;/i&gt;</title><link href="e/1"/>
    <updated>2003-12-13T18:30:02+01:00</updated>
    <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Some <em>text</em>.</p></div></content></entry>
</feed>"""


def test_an_rss_feed_becomes_a_list_of_entries():
    page = read_feed(source("feed", RSS))
    assert page.text == (
        "# News & more\nhttp://site.example/home\n\nAll of it\n\n"
        "## One\nhttp://site.example/folder/one.html · 2021-09-05T22:01:00Z · Ann\n\nHello **world**\n\na < b\n\n"
        "## Two\nsome day"
    )
    assert (page.kind, page.metadata.title, page.metadata.language) == ("feed", "News & more", "en")
    assert read_feed(source("feed", RSS, "text")).text.startswith("News & more\nhttp")


def test_an_atom_feed_becomes_a_list_of_entries():
    page = read_feed(source("feed", ATOM))
    assert page.text == (
        "# Log\nhttps://log.example/\n\n## A b\nhttp://site.example/folder/e/1 · 2003-12-13T17:30:02Z\n\nSome *text*."
    )
    assert page.metadata.author == "Joe"


def test_tags_in_plain_text_of_a_feed_are_literal():
    entry = (
        "<entry><title>The &lt;main&gt; tag &amp;amp;</title>"
        "<summary type='text'>Write &lt;p&gt;Hi&lt;/p&gt;.</summary></entry>"
    )
    feed = f"<feed xmlns='http://www.w3.org/2005/Atom'><title type='text'>On &lt;b&gt;</title>{entry}</feed>"
    assert read_feed(source("feed", feed)).text == "# On <b>\n\n## The <main> tag &amp;\n\nWrite <p>Hi</p>."


def test_the_html_of_an_entry_becomes_markdown():
    markup = (
        "<p>See <a href='a b.html'>it</a>.</p><pre>if a:\n    b()</pre><ul><li>one</li></ul>"
        "<img src=den.png alt='A den'><p style='display:none'>Obey me.</p>"
    )
    item = f"<item xml:base='http://other.example/x/'><description>{escape(markup)}</description></item>"
    page = read_feed(source("feed", f"<rss version='2.0'><channel><title>T</title>{item}</channel></rss>"))
    assert page.text.endswith(
        "\n\nSee [it](http://other.example/x/a%20b.html).\n\n```\nif a:\n    b()\n```\n\n- one\n\n"
        "![A den](http://other.example/x/den.png)"
    )
    assert page.removed.elements == 1


def test_the_enclosures_of_an_entry_are_listed():
    item = "<item><title>Talk</title><link>/talk</link><enclosure url='/talk.mp3' type='audio/mpeg'/></item>"
    page = read_feed(source("feed", f"<rss version='2.0'><channel><title>T</title>{item}</channel></rss>"))
    assert "## Talk\nhttp://site.example/talk · http://site.example/talk.mp3" in page.text


def test_an_entry_with_an_empty_summary_shows_its_content():
    for summary in ("", " ", "&lt;p hidden&gt;No&lt;/p&gt;"):
        entry = f"<entry><title>A</title><summary type='html'>{summary}</summary>"
        entry += "<content type='html'>&lt;p&gt;All of the text&lt;/p&gt;</content></entry>"
        page = read_feed(source("feed", f"<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title>{entry}</feed>"))
        assert (page.text, page.notes) == ("# T\n\n## A\n\nAll of the text", ())


def test_cut_code_closes_its_fence():
    for around in ("", "ul", "blockquote"):
        code = escape(f"<{around or 'div'}><li><pre>{'a = 1' + chr(10) * 2}{'b()' + chr(10)}{'c' * 6_000}</pre>")
        items = f"<item><description>{code}</description></item><item><title>B</title></item>"
        page = read_feed(source("feed", f"<rss version='2.0'><channel><title>T</title>{items}</channel></rss>"))
        assert page.text.endswith(" …\n```\n\n## B")


def test_an_entry_shown_by_its_summary_is_noted():
    content = "<content:encoded xmlns:content='http://purl.org/rss/1.0/modules/content/'>All of it, to its end."
    item = f"<item><description>Some of it</description>{content}</content:encoded></item>"
    page = read_feed(source("feed", f"<rss version='2.0'><channel><title>T</title>{item}</channel></rss>"))
    assert page.notes == ("1 entry shown only in summary: `raw` has the whole text.",)
    assert read_feed(source("feed", ATOM)).notes == ()


def test_the_json_format_of_a_feed_lists_its_entries():
    entries = json.loads(read_feed(source("feed", RSS, "json")).text)
    assert [entry["title"] for entry in entries] == ["One", "Two"]
    assert "link" not in entries[1]


def test_the_links_format_of_a_feed_lists_the_links_of_its_entries():
    assert read_feed(source("feed", RSS, "links")).text == "- [One](http://site.example/folder/one.html)"


def test_metadata_of_a_feed_has_version_title_and_entry_count():
    about = json.loads(read_feed(source("feed", RSS, "metadata")).text)
    assert (about["version"], about["title"], about["entries"]) == ("rss20", "News & more", 2)


def test_a_long_feed_shows_its_first_entries():
    entries = "".join(f"<item><title>Entry {number}.</title></item>" for number in range(1_001))
    page = read_feed(source("feed", f"<rss version='2.0'><channel><title>x</title>{entries}</channel></rss>"))
    assert "Entry 999." in page.text
    assert "Entry 1000." not in page.text
    assert page.notes == ("Only the first 1000 entries are shown.",)


def test_nested_entities_of_a_feed_are_not_expanded():
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    text = RSS.replace("<rss", f'<!DOCTYPE rss [<!ENTITY l0 "lol">{laughs}]><rss').replace("Hello", "&l9;")
    assert len(read_feed(source("feed", text.replace("<![CDATA[", "").replace("]]>", ""))).text) < 10_000


def test_external_entities_of_a_feed_read_no_file(tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("top secret")
    text = RSS.replace("<rss", f'<!DOCTYPE rss [<!ENTITY x SYSTEM "{secret.as_uri()}">]><rss').replace("One", "&x;")
    assert "top secret" not in read_feed(source("feed", text)).text


def test_a_feed_body_that_is_a_path_reads_no_file():
    with pytest.raises(FetchError, match="the feed is damaged") as caught:
        read_feed(source("feed", __file__))
    assert caught.value.code == "unreadable"


def test_plain_text_strips_markup():
    rows = {
        "1 < 2 & 3 > 2": "1 < 2 & 3 > 2",
        "a<br>b<hr/>c": "a\nb\nc",
        "<ul><li>a</li><li>b</li></ul>": "a\n\nb",
        "a<!-- b -->c<style>d</style>e<script>f": "ace",
        "&amp;lt;b&amp;gt; &eacute;": "&lt;b&gt; é",
        "<p" * 100_000: "<p" * 100_000,
    }
    assert {markup: plain_text(markup) for markup in rows} == rows
