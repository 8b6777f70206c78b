"""Adjacent labels as separate words, and inline parts of one word."""

import pytest

from tests.servers.fetch.read.html.content.test_main_content import text_of


@pytest.mark.parametrize(
    ("markup", "written"),
    [
        ("<span class=name>amount</span><span class=type>integer</span>", "amount integer"),
        ("<span class=name><b>amount</b></span><time>May 4</time>", "amount May 4"),
        ("<a href=/red>Red</a><a href=/grey>Grey</a>", "Red Grey"),
        ("Press <kbd>Ctrl</kbd><kbd>K</kbd>.", "Press Ctrl K."),
        ("<label>Size</label><span>Large</span>", "Size Large"),
        ("<my-cell>One.</my-cell><my-cell>Two</my-cell>", "One. Two"),
        ("<span>amo</span><span>unt</span>", "amount"),
        ("<span class=run>amo</span><span class=run>unt</span>", "amount"),
        ("<a href=/amount>amo</a><a href=/amount>unt</a>", "amount"),
        ("<span class=initial>O</span><span class=rest>nce</span> upon", "Once upon"),
        ("<span class=name>amo</span>unt", "amount"),
        ("<span class=name>amount</span><span class=sign>: </span>", "amount:"),
        ("<code><span class=number>10</span><span class=unit>px</span></code>", "10px"),
        ("<pre><div><span class=number>10</span><span class=unit>px</span></div></pre>", "10px"),
    ],
)
def test_adjacent_labels_are_separate_words(markup: str, written: str) -> None:
    inside = markup if markup.startswith("<pre") else f"<p>Of it, {markup}</p>"
    lines = text_of(inside).splitlines()
    assert written in [line.removeprefix("Of it, ") for line in lines]
