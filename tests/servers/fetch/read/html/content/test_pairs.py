"""Lists of names and descriptions that are blocks side by side, or follow each other."""

from servers.fetch.read.html.page import read_html
from tests.servers.fetch.read.html.content.test_main_content import URL, WORDS, text_of

NAMES = ("bark", "dig", "eat", "run")


def pairs_of(name: str, meaning: str) -> str:
    pairs = (
        f"<div class=name>{name.format(word)}</div><div class=meaning>{meaning.format(word)}</div>" for word in NAMES
    )
    return f"<div class=grid>{''.join(pairs)}</div>"


def test_a_name_with_a_description_beside_it_is_content() -> None:
    text = text_of(pairs_of("<code><a href=#{0}>{0}()</a></code>", "<div>Makes the fox do it at once.</div>"))
    assert [name for name in NAMES if f"{name}()" not in text] == []


def test_a_link_with_links_beside_it_is_omitted() -> None:
    text = text_of(pairs_of("<a href=#{0}>{0}()</a>", "<a href=/{0}>More about foxes</a>") + f"<p>{WORDS}</p>")
    assert [name for name in NAMES if f"{name}()" in text] == []


def test_a_name_at_the_start_of_similar_blocks_is_content() -> None:
    parameters = (
        f"<div class=parameter><div class=head><label for={name}>{name}</label> <span>integer</span></div>"
        f"<div><p>How long the fox is to {name}, from 1 to 30 days. Without it, the fox decides.</p></div>"
        f"<input id={name}></div>"
        for name in NAMES[:2]
    )
    page = f"""<title>Call a fox</title><body><nav><a href=/>Foxes</a> <a href=/dens>Dens</a></nav>
<main><article><h1>Call a fox</h1><div><p>Calls a fox. It comes within two hours, and can be sent home until then.</p>
</div><section><form><header><h2>Parameters</h2></header>{"".join(parameters)}</form></section>
<section><h2>Answers</h2><dl><dt>201<dd>The fox comes.<dt>409<dd>There is no fox.</dl></section></article></main>"""
    text = read_html(page, URL, "text", None).text
    assert [name for name in NAMES[:2] if f"{name} integer" not in text] == []
