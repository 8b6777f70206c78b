"""Hidden panels without attributes for their controls, recognized by repetition."""

import pytest

from tests.servers.common.html.bodies import markdown, read_body

WORDS = "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all"
HIDDEN = "style='display:none'"


def answer(number: int, style: str = HIDDEN) -> str:
    return f"<div class=a {style}>{number}. {WORDS}.</div>"


@pytest.mark.parametrize(
    "item",
    [
        "<div class=item><b class=q>Question</b>{}</div>",
        "<li><a href=#>Question</a>{}</li>",
        "<h3>Question</h3>{}",
        "<section><p>Question</p><div><div>{}</div></div></section>",
        "<dl><dt>Question</dt><dd style='display:none'>{}</dd></dl>",
    ],
)
def test_hidden_blocks_after_short_lines_are_shown_as_an_accordion(item: str) -> None:
    page = read_body("".join(item.format(answer(number, "" if "<dd" in item else HIDDEN)) for number in (1, 2)))
    assert (page.text.count(WORDS), page.text.count("Question"), page.removed.elements) == (2, 2, 0)


def test_a_short_answer_among_long_ones_is_shown() -> None:
    answers = (f"{WORDS}. " * 2, "No.", f"Yes. {WORDS}. " * 2)
    items = "".join(f"<h3>Question</h3><div class=a {HIDDEN}>{text}</div>" for text in answers)
    assert markdown(items).count("Question\n\nNo.") == 1


def test_short_hidden_definitions_of_terms_are_shown() -> None:
    terms = "".join(f"<dt>{number}?</dt><dd {HIDDEN}>Because of {number}.</dd>" for number in (1, 2))
    assert markdown(f"<dl>{terms}</dl>").count("Because of") == 2


def test_an_accordion_hidden_by_a_style_sheet_is_shown() -> None:
    items = "".join(f"<div class=i><b>Question</b>{answer(number, '')}</div>" for number in (1, 2))
    assert markdown(items, "<style>.a{display:none}</style>").count(WORDS) == 2


@pytest.mark.parametrize(
    "body",
    [
        "<b>Question</b>" + answer(1),
        "<p>A</p>" + answer(1) + f"<h3>Another shape</h3>{answer(2)}",
        f"<nav><ul><li>A{answer(1)}</li><li>B{answer(2)}</li></ul></nav>",
        "".join(f"<div><b>More</b><div {HIDDEN}><a href=/x>{number}. {WORDS}</a></div></div>" for number in (1, 2)),
        "".join(f"<div><a href=/{number}>Fox</a>{answer(number)}</div>" for number in (1, 2)),
        f"<div><b>A</b>{answer(1)}</div>" * 2,
        "".join(f"<div><b>A</b><div {HIDDEN}>Copied {number}</div></div>" for number in (1, 2)),
        "".join(f"<div><b>A</b>{answer(number, 'style=text-indent:-9999px')}</div>" for number in (1, 2)),
        "".join(f"<div><b>{WORDS * 4}</b>{answer(number)}</div>" for number in (1, 2)),
    ],
    ids=[
        "only one",
        "of two shapes",
        "a menu",
        "links",
        "below a link",
        "copies of a template",
        "messages",
        "off the screen",
        "below a text",
    ],
)
def test_other_hidden_blocks_stay_hidden(body: str) -> None:
    page = read_body(body)
    assert page.removed.elements > 0
    assert WORDS + "." not in page.text


def test_adjacent_blocks_below_as_many_labels_are_tabs() -> None:
    labels = "<ul><li>One</li><li>Two</li><li>Three</li></ul>"
    panels = answer(1, "") + answer(2) + answer(3)
    for html in (f"{labels}<div>{panels}</div>", f"<div>{labels}</div><section><div>{panels}</div></section>"):
        assert markdown(html).count(WORDS) == 3
    assert markdown(f"<ul><li>One</li><li>Two</li></ul><div>{panels}</div>").count(WORDS) == 1
    assert markdown(f"<div>{panels}</div>").count(WORDS) == 1
