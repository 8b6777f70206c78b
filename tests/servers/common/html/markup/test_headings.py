"""Headings without an end tag, and headings that contain blocks."""

import pytest

from tests.servers.common.html.bodies import markdown

WORDS = "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all. " * 2


@pytest.mark.parametrize("end", ["", "<h2>", "</h3>"])
def test_a_heading_without_end_tag_contains_no_following_block(end: str) -> None:
    text = markdown(f"<h2>Foxes{end}<div>{WORDS}</div><ul><li>Red</ul>End")
    assert text == f"## Foxes\n\n{WORDS.strip()}\n\n- Red\n\nEnd"


def test_the_text_after_a_heading_with_blocks_is_after_those() -> None:
    assert markdown(f"<h2>Foxes<div>{WORDS}</div></h2>End") == f"## Foxes\n\n{WORDS.strip()}\n\nEnd"


@pytest.mark.parametrize("end", ["</h3>", "<!-- <h3>Dens --></h2>", "<!--><!-- <h3> --></h2>"])
def test_an_end_tag_of_any_heading_level_outside_comments_ends_it(end: str) -> None:
    assert markdown(f"<h2>Foxes{end}{WORDS}") == f"## Foxes\n\n{WORDS.strip()}"


def test_a_heading_before_another_heading_is_ended() -> None:
    assert markdown("<h2>Foxes<h3>Dens</h3>They dig.") == "## Foxes\n\n### Dens\n\nThey dig."


def test_blocks_in_a_short_heading_are_joined_to_one_line() -> None:
    assert markdown("<h2><a href=/f>Foxes<div>New</div></a></h2>") == "## [Foxes New](https://example.com/f)"
    assert markdown("<h1><div>Foxes</div><div>and dens</div></h1>") == "# Foxes and dens"
    assert markdown("<h3><a href=/f><p>Foxes</p></a></h3>") == "### [Foxes](https://example.com/f)"


def test_only_the_first_block_of_a_long_heading_is_the_heading() -> None:
    assert markdown(f"<h2><div>Foxes</div><div>{WORDS}</div></h2>") == f"## Foxes\n\n{WORDS.strip()}"
