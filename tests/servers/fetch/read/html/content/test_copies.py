"""Repeated blocks, and blocks that only look alike."""

import pytest

from servers.fetch.read.html.page import read_html
from tests.servers.fetch.read.html.content.test_main_content import LONG, URL, text_of

CARD = "<div><h2>Soft wool</h2><p>It keeps you warm, and cool in summer.</p></div>"
STEPS = "<div><p>Open the file again.</p><p>Press the key and wait.</p></div>"


def test_a_repeated_block_is_read_once() -> None:
    for markup in (CARD * 3, f"<div>{CARD}</div><section>{CARD}</section>"):
        text = text_of(markup)
        assert (text.count("Soft wool"), text.count("It keeps you warm")) == (1, 1)


def test_repeated_blocks_are_counted_in_a_note() -> None:
    page = f"<title>Foxes</title><main><h1>Foxes</h1>{LONG}{CARD}{CARD}{LONG}</main>"
    [note] = read_html(page, URL, "text", None).notes
    assert "(repeated 47)" in note


def test_repeated_navigation_around_the_text_is_omitted() -> None:
    links = "<ul><li>Previous: <a href=/1>Practice on Thursday</a><li>Next: <a href=/3>The old ropes</a>{}</ul>"
    text = f"<pre>{'I measured each rope, from hole to floor. ' * 9}</pre>"
    before, after = links.format("<li>By <a href=/date>date</a>"), links.format("")
    text = read_html(f"<title>Ropes</title><h1>Ropes</h1>{before}<hr>{text}<hr>{after}", URL, "text", None).text
    assert "I measured" in text
    assert [word for word in ("Practice", "old ropes", "date") if word in text] == []


def test_a_link_repeated_before_and_after_the_text_is_content() -> None:
    link = "<p>To get it, load <a href=/fox.zip>the whole archive of foxes</a></p>"
    assert text_of(f"{link}{LONG}{LONG}{link}").count("archive of foxes") > 0


@pytest.mark.parametrize(
    "markup",
    [
        f"<h2>On Monday</h2>{STEPS}<h2>On Sunday</h2>{STEPS}",
        f"<table><tr><th>Monday<th>Sunday<tr><td>{STEPS}<td>{STEPS}</table>",
        f"<details><summary>Linux</summary>{STEPS}</details><details><summary>Windows</summary>{STEPS}</details>",
        "".join(
            f"<div><p>Open the file again.</p><p>Press the <a href=/{n}>key</a> and wait.</p></div>" for n in "ab"
        ),
        f"<dl><dt>Monday<dd>{STEPS}<dt>Sunday<dd>{STEPS}</dl>",
        "<p>Open the file again, and press the key.</p>" * 2,
        "<div><p>Yes.</p><p>No.</p></div>" * 2,
        f"<pre>f()</pre>{STEPS}<pre>g()</pre>{STEPS}" + "<pre>h()</pre>" * 8,
    ],
)
def test_repetition_with_a_meaning_is_content(markup: str) -> None:
    text = text_of(markup)
    assert 2 in (text.count("Open the file again"), text.count("Yes."))
