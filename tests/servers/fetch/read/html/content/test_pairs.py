"""The names of a list whose terms and meanings are blocks side by side are content."""

from tests.servers.fetch.read.html.content.test_main_content import WORDS, text_of

NAMES = ("bark", "dig", "eat", "run")


def pairs_of(name: str, meaning: str) -> str:
    pairs = (
        f"<div class=name>{name.format(word)}</div><div class=meaning>{meaning.format(word)}</div>" for word in NAMES
    )
    return f"<div class=grid>{''.join(pairs)}</div>"


def test_a_name_with_a_description_beside_it_stays() -> None:
    text = text_of(pairs_of("<code><a href=#{0}>{0}()</a></code>", "<div>Makes the fox do it at once.</div>"))
    assert [name for name in NAMES if f"{name}()" not in text] == []


def test_a_link_with_links_beside_it_leads_away() -> None:
    text = text_of(pairs_of("<a href=#{0}>{0}()</a>", "<a href=/{0}>More about foxes</a>") + f"<p>{WORDS}</p>")
    assert [name for name in NAMES if f"{name}()" in text] == []
