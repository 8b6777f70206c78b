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


def test_h8_a_feed_is_shown_by_its_entries():
    page = read_feed(source("feed", RSS))
    assert page.text == (
        "# News & more\nhttp://site.example/home\n\nAll of it\n\n"
        "## One\nhttp://site.example/folder/one.html · 2021-09-05T22:01:00Z · Ann\n\nHello **world**\n\na < b\n\n"
        "## Two\nsome day"
    )
    assert (page.kind, page.metadata.title, page.metadata.language) == ("feed", "News & more", "en")
    assert read_feed(source("feed", RSS, "text")).text.startswith("News & more\nhttp")


def test_h8_a_feed_of_atom_is_shown_the_same():
    page = read_feed(source("feed", ATOM))
    assert page.text == (
        "# Log\nhttps://log.example/\n\n## A b\nhttp://site.example/folder/e/1 · 2003-12-13T17:30:02Z\n\nSome *text*."
    )
    assert page.metadata.author == "Joe"


def test_tags_are_literal_in_a_text_that_is_declared_as_plain():
    entry = (
        "<entry><title>The &lt;main&gt; tag &amp;amp;</title>"
        "<summary type='text'>Write &lt;p&gt;Hi&lt;/p&gt;.</summary></entry>"
    )
    feed = f"<feed xmlns='http://www.w3.org/2005/Atom'><title type='text'>On &lt;b&gt;</title>{entry}</feed>"
    assert read_feed(source("feed", feed)).text == "# On <b>\n\n## The <main> tag &amp;\n\nWrite <p>Hi</p>."


def test_the_text_of_an_entry_keeps_its_form():
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


def test_the_files_of_an_entry_are_shown():
    item = "<item><title>Talk</title><link>/talk</link><enclosure url='/talk.mp3' type='audio/mpeg'/></item>"
    page = read_feed(source("feed", f"<rss version='2.0'><channel><title>T</title>{item}</channel></rss>"))
    assert "## Talk\nhttp://site.example/talk · http://site.example/talk.mp3" in page.text


def test_an_entry_whose_summary_has_no_text_is_shown_by_its_content():
    for summary in ("", " ", "&lt;p hidden&gt;No&lt;/p&gt;"):
        entry = f"<entry><title>A</title><summary type='html'>{summary}</summary>"
        entry += "<content type='html'>&lt;p&gt;All of the text&lt;/p&gt;</content></entry>"
        page = read_feed(source("feed", f"<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title>{entry}</feed>"))
        assert (page.text, page.notes) == ("# T\n\n## A\n\nAll of the text", ())


def test_code_that_is_cut_ends_with_its_entry():
    for around in ("", "ul", "blockquote"):
        code = escape(f"<{around or 'div'}><li><pre>{'a = 1' + chr(10) * 2}{'b()' + chr(10)}{'c' * 6_000}</pre>")
        items = f"<item><description>{code}</description></item><item><title>B</title></item>"
        page = read_feed(source("feed", f"<rss version='2.0'><channel><title>T</title>{items}</channel></rss>"))
        assert page.text.endswith(" …\n```\n\n## B")


def test_an_entry_that_is_shown_by_its_summary_says_so():
    content = "<content:encoded xmlns:content='http://purl.org/rss/1.0/modules/content/'>All of it, to its end."
    item = f"<item><description>Some of it</description>{content}</content:encoded></item>"
    page = read_feed(source("feed", f"<rss version='2.0'><channel><title>T</title>{item}</channel></rss>"))
    assert page.notes == ("1 entry shown only in summary: `raw` has the whole text.",)
    assert read_feed(source("feed", ATOM)).notes == ()


def test_entries_of_a_feed_are_given_as_json():
    entries = json.loads(read_feed(source("feed", RSS, "json")).text)
    assert [entry["title"] for entry in entries] == ["One", "Two"]
    assert "link" not in entries[1]


def test_links_of_a_feed_are_those_of_its_entries():
    assert read_feed(source("feed", RSS, "links")).text == "- [One](http://site.example/folder/one.html)"


def test_metadata_of_a_feed_tells_what_it_is():
    about = json.loads(read_feed(source("feed", RSS, "metadata")).text)
    assert (about["version"], about["title"], about["entries"]) == ("rss20", "News & more", 2)


def test_of_a_long_feed_the_first_entries_are_shown():
    entries = "".join(f"<item><title>Entry {number}.</title></item>" for number in range(1_001))
    page = read_feed(source("feed", f"<rss version='2.0'><channel><title>x</title>{entries}</channel></rss>"))
    assert "Entry 999." in page.text
    assert "Entry 1000." not in page.text
    assert page.notes == ("Only the first 1000 entries are shown.",)


def test_h6_entities_of_a_feed_are_not_multiplied():
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    text = RSS.replace("<rss", f'<!DOCTYPE rss [<!ENTITY l0 "lol">{laughs}]><rss').replace("Hello", "&l9;")
    assert len(read_feed(source("feed", text.replace("<![CDATA[", "").replace("]]>", ""))).text) < 10_000


def test_h6_entities_of_a_feed_reach_no_file(tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("top secret")
    text = RSS.replace("<rss", f'<!DOCTYPE rss [<!ENTITY x SYSTEM "{secret.as_uri()}">]><rss').replace("One", "&x;")
    assert "top secret" not in read_feed(source("feed", text)).text


def test_a_body_that_names_a_file_reaches_no_file():
    with pytest.raises(FetchError, match="the feed is damaged") as caught:
        read_feed(source("feed", __file__))
    assert caught.value.code == "unreadable"


def test_markup_becomes_plain_text():
    rows = {
        "1 < 2 & 3 > 2": "1 < 2 & 3 > 2",
        "a<br>b<hr/>c": "a\nb\nc",
        "<ul><li>a</li><li>b</li></ul>": "a\n\nb",
        "a<!-- b -->c<style>d</style>e<script>f": "ace",
        "&amp;lt;b&amp;gt; &eacute;": "&lt;b&gt; é",
        "<p" * 100_000: "<p" * 100_000,
    }
    assert {markup: plain_text(markup) for markup in rows} == rows
