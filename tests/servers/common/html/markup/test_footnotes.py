"""Footnote marks and notes in the markup of many programs."""

from tests.servers.common.html.bodies import markdown, plain

NOTED = "It fell.[^2]\n\n[^2]: In 1847."


def test_footnote_marks_are_linked_to_their_notes():
    for mark, note in [
        ("<sup><a href=#n id=r>2</a></sup>", "<p id=n>In 1847. <a href=#r>↩</a>"),
        ("<sup id=r><a href=#n>[2]</a></sup>", "<ol><li id=n><b><a href=#r>^</a></b> In 1847.</ol>"),
        ("<a href=#n id=r class=footnote-ref><sup>2</sup></a>", "<div id=n><p>In 1847.<a href=#r>↩︎</a></div>"),
        ("<a href=#n name=r>[2]</a>", "<p><a href=#r name=n>[2]</a> In 1847."),
        ("<a href=#n role=doc-noteref>2</a>", "<aside id=n>2. In 1847.</aside>"),
        ("<sup>2</sup>", "<p><sup>2</sup> In 1847."),
        ("<sup>[2]</sup>", "<p><sup>[2]</sup> In 1847."),
    ]:
        assert markdown(f"<p>It fell.{mark}</p>{note}") == NOTED, mark


def test_a_note_in_a_box_after_its_mark_is_behind_the_block():
    box = "<u><sup>{0}</sup><span><span><sup>{0}</sup><i>{1}</i><span>{0}</span>{2}</span></span></u>"
    notes = box.format(2, "", "In 1847."), box.format(3, "", "All."), box.format(2, "footnotemark: ", "")
    written = "It fell,[^2] fell[^3] and[^2] fell.\n\n[^2]: In 1847.\n\n[^3]: All.\n\nEnd"
    assert markdown("<p>It fell,{} fell{} and{} fell.<p>End".format(*notes)) == written
    assert markdown(f"<div>It fell.{notes[0]}</div>") == NOTED
    assert markdown(f"<ul><li>It fell.{notes[0]}</ul>") == f"- {NOTED}"
    assert markdown("<p>x<sup>2</sup><span>y<sup>2</sup></span>") == "x^2 y^2"


def test_a_heading_that_repeats_the_mark_begins_a_note():
    mark = "<p>It fell.<a id=DOCF2 href=#FOOT2><sup>2</sup></a></p>"
    notes = "<h5><a id=FOOT2 href=#DOCF2>(2)</a></h5><p>In 1847.</p><h5>More</h5><p>x</p>"
    assert markdown(mark + notes) == f"{NOTED}\n\n##### More\n\nx"


def test_a_numbered_heading_without_a_mark_stays_a_heading():
    assert markdown("<p><a href=#n>2</a></p><h2><a id=n href=#top>2</a></h2><p>x</p>") == "2\n\n## 2\n\nx"


def test_numbered_chapters_are_not_footnotes():
    contents = "<p><a id=t1 href=#c1>1</a> <a id=t2 href=#c2>2</a></p>"
    chapters = "<h2><a id=c1 href=#t1>1</a></h2><p>One.</p><h2><a id=c2 href=#t2>2</a></h2><p>Two.</p>"
    assert markdown(contents + chapters) == "1 2\n\n## 1\n\nOne.\n\n## 2\n\nTwo."


def test_a_numbered_heading_before_a_long_text_stays_a_heading():
    mark = "<p>It fell.<a id=DOCF2 href=#FOOT2><sup>2</sup></a></p>"
    long = "<h5><a id=FOOT2 href=#DOCF2>(2)</a></h5><p>" + "It fell. " * 1_000
    assert "\n\n##### (2)\n\nIt fell." in markdown(mark + long)


def test_a_footnote_can_have_paragraphs_and_several_marks():
    marks = "<p>a<sup><a href=#n id=r1>1</a></sup> b<sup><a href=#n id=r2>1</a></sup></p>"
    note = "<ol><li id=n><p>One.</p><p>Two. <a href=#r1>↩</a> <a href=#r2>↩</a></p></ol>"
    assert markdown(marks + note) == "a[^1] b[^1]\n\n[^1]: One.\n\n    Two."


def test_plain_text_has_footnote_marks_in_brackets():
    assert plain("<p>It fell.<sup><a href=#n>2</a></sup></p><p id=n>In 1847.") == "It fell.[2]\n\n[2] In 1847."


def test_exponents_and_numbered_links_are_not_footnotes():
    for html, text in [
        ("<p>12 m<sup>2</sup></p><p><sup>2</sup> A note.</p>", "12 m^2\n\n2 A note."),
        ("<p>Part <a href=#x>2</a></p><h2 id=x>Two</h2>", "Part 2\n\n## Two"),
        ("<p>Part <a href=#x>2</a></p><p id=x>Two</p>", "Part 2\n\nTwo"),
        ("<p id=x>Two</p><p>up<sup><a href=#x>a</a></sup></p>", "Two\n\nup^a"),
        ("<p>It fell<sup><a href=https://e.org/>[2]</a></sup></p>", r"It fell[\[2\]](https://e.org/)"),
    ]:
        assert markdown(html) == text


def test_a_raised_number_after_a_sentence_is_a_mark_without_a_note():
    assert (
        markdown("<p>It fell.<sup>3</sup> Then, <b>again.</b><sup>4</sup></p>") == "It fell.[^3] Then, **again.**[^4]"
    )
