"""Markdown pages."""

import json

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.read.markdown_page import read_markdown
from servers.fetch.read.page import Format
from tests.servers.fetch.bodies import source

TEXT = """---
title: "All of bread"
---
# Bread

About [rye](rye.md "Rye") and [rye](rye.md).

```md
# Not a heading, and [no link](x.md)
```

## How *to* bake?

See <https://oven.example/>.

### Heat

230 degrees.

Crumb
-----

Soft.
"""

SHOWN = TEXT.replace("(rye.md", "(http://site.example/folder/rye.md")


def read(format: Format = "markdown", section: str | None = None, text: str = TEXT) -> str:
    return read_markdown(source("markdown", text, format, section)).text


def test_markdown_is_shown_as_sent_with_its_title() -> None:
    page = read_markdown(source("markdown", TEXT))
    assert (page.text, page.kind, page.metadata.title) == (SHOWN, "markdown", "All of bread")
    assert read_markdown(source("markdown", "Text\n\n# The *first*\n\n# Second")).metadata.title == "The first"


@pytest.mark.parametrize("section", ["How to bake?", "#how-to-bake", "how TO", "## How to bake?"])
def test_a_section_goes_up_to_the_next_heading_of_its_level(section: str) -> None:
    text = read(section=section)
    assert text.startswith("## How *to* bake?\n")
    assert text.endswith("230 degrees.")


def test_an_underlined_heading_starts_a_section() -> None:
    assert read(section="Crumb") == "Crumb\n-----\n\nSoft."


def test_a_missing_section_is_an_error_that_lists_the_headings() -> None:
    with pytest.raises(FetchError) as caught:
        read(section="Not a heading")
    assert caught.value.code == "not_found"
    assert caught.value.quoted == "Bread\nHow to bake?\nHeat\nCrumb"
    with pytest.raises(FetchError, match="no headings"):
        read(section="x", text="plain")


def test_each_link_is_listed_once_as_absolute() -> None:
    assert read("links") == (
        "- [rye](http://site.example/folder/rye.md)\n- [https://oven.example/](https://oven.example/)"
    )


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("[a](b.md)", "[a](http://site.example/folder/b.md)"),
        ('![a](</p q.png> "T")', '![a](<http://site.example/p q.png> "T")'),
        ("[a](../b_(c)) and [d](?e)", "[a](http://site.example/b_(c)) and [d](http://site.example/folder/page?e)"),
        ("[a][b]\n\n[b]: c.md 'T'", "[a][b]\n\n[b]: http://site.example/folder/c.md 'T'"),
        ("- item\n  [a](//cdn.example/b)", "- item\n  [a](http://cdn.example/b)"),
        ("[a](#part) [m](mailto:a@b) <https://c.example/>", "[a](#part) [m](mailto:a@b) <https://c.example/>"),
        ("    [a](b.md)\n\n```\n[a](b.md)\n```", "    [a](b.md)\n\n```\n[a](b.md)\n```"),
        ("[a](http://[b)", "[a](http://[b)"),
        (
            "`on[name](event)`, ``[`](b) [a](b)``, [a](b)",
            "`on[name](event)`, ``[`](b) [a](b)``, [a](http://site.example/folder/b)",
        ),
        ("\\`[a](b)`", "\\`[a](http://site.example/folder/b)`"),
    ],
)
def test_relative_links_become_absolute(sent: str, shown: str) -> None:
    assert read(text=sent) == shown


def test_a_section_has_absolute_links() -> None:
    assert read(section="b", text="# A\n\n[x](y)\n\n# B\n\n[x](y)") == "# B\n\n[x](http://site.example/folder/y)"


def test_links_within_the_page_are_left_out_and_brackets_are_escaped() -> None:
    text = "[here](#x) [mail](mailto:a@b) [a \\[b\\]](/c)"
    assert read("links", text=text) == "- [a \\[b\\]](http://site.example/c)"


def test_links_beyond_the_limit_are_counted() -> None:
    page = read_markdown(source("markdown", "".join(f"[{number}](/{number})\n" for number in range(1_002)), "links"))
    assert page.notes == ("2 more links left out.",)


def test_metadata_has_an_outline() -> None:
    facts = json.loads(read("metadata"))
    assert facts["title"] == "All of bread"
    assert facts["outline"][1] == {"level": 2, "text": "How to bake?"}
