"""Captions of figures, with and without `figcaption`."""

import pytest

from tests.servers.fetch.read.html.content.test_main_content import LONG, read_html

PICTURE = "<span><img src=/den.png alt='Den'><ol><li><a href=/den-large.png>Download the picture</a></ol></span>"
CAPTION = '![Den](https://example.com/den.png "A den in winter.")'


def figure(inside: str) -> str:
    page = f"<title>Foxes</title><main><h1>Foxes</h1>{LONG}<figure>{inside}</figure>{LONG}</main>"
    return read_html(page, "https://example.com/", "markdown", None).text


@pytest.mark.parametrize("caption", ["<p>A den in winter.</p>", "<span><span><p>A den in winter.</p></span></span>"])
def test_the_only_text_of_a_figure_is_its_caption(caption: str) -> None:
    assert CAPTION in figure(PICTURE + caption)


def test_a_caption_in_paragraphs_is_kept() -> None:
    assert CAPTION in figure(f"{PICTURE}<figcaption><p>A den in winter.</p></figcaption>")


@pytest.mark.parametrize(
    ("inside", "written"),
    [
        ("<table><tr><th>Den<th>Foxes<tr><td>Hill<td>4</table>", "| Den | Foxes |"),
        ("<ul><li>Hill<li>Wood</ul>", "- Hill\n- Wood"),
        ("<p>A den.</p><p>In winter.</p>", "A den.\n\nIn winter."),
    ],
)
def test_several_blocks_beside_a_picture_are_not_a_caption(inside: str, written: str) -> None:
    assert written in figure(f"<img src=/den.png alt=Den><div>{inside}</div>")


@pytest.mark.parametrize("inside", ["A den.<br>In winter.", "<p>A den.</p><p>In winter.</p>"])
def test_the_lines_of_a_caption_stay_separate(inside: str) -> None:
    text = figure(f"{PICTURE}<figcaption>{inside}</figcaption>")
    assert "![Den](https://example.com/den.png)\n\nA den." in text
    assert "\nIn winter." in text
