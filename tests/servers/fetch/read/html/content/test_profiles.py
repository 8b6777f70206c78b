"""Threads: posts without the profiles of their authors."""

import pytest

from tests.servers.fetch.read.html.content.test_main_content import WORDS, text_of

POSTS = (("vixen", 1997), ("reynard", 14), ("tod", 8), ("vixen", 1997), ("brock", 345))
ROWS = "<table><tr><td><a href=/{name}>{name}</a><p>Old fox<td>Dens: {dens}</tr><tr><td colspan=2>{text}</tr></table>"
LINKED = "<dl><dt><a href=/{name}>{name}</a><dd>Old fox<dd>Dens: {dens}</dl><div>{text}</div>"
PLAIN = "<div><b>{name}</b><p>Old fox<p>Dens: {dens}<p>Joined: May {dens}</div><div><h3>Re: Dens</h3>{text}</div>"


def thread_of(post: str) -> str:
    """Makes a thread of posts, one of them short, each with a name, a number and a text."""
    texts = [f"<p>Post {number}: {WORDS}</p><p>Good luck.</p>" for number in range(len(POSTS) - 1)]
    posts = (
        f"<div class=post>{post.format(name=name, dens=dens, text=text)}</div>"
        for (name, dens), text in zip(POSTS, [*texts, "<p>Good luck.</p>"], strict=True)
    )
    return "".join(posts)


@pytest.mark.parametrize("post", [ROWS, LINKED, PLAIN])
def test_a_post_keeps_its_author_and_loses_their_profile(post: str) -> None:
    words = text_of(thread_of(post)).split()
    assert [words.count(word) for word in ("vixen", "tod", "brock", "luck.", "Post")] == [2, 1, 1, 5, 4]
    assert [word for word in ("Old", "Dens:", "Joined:", "1997", "14", "Re:") if word in words] == []


def test_an_author_named_twice_in_a_post_is_written_once() -> None:
    text = text_of(thread_of(f"{LINKED}<p>Written by <a href=/{{name}}>{{name}}</a> in the den</p>"))
    assert (text.count("vixen"), text.count("Written by vixen in the den")) == (2, 2)


@pytest.mark.parametrize(
    "post",
    [
        # An author with different values is the maker of different things.
        LINKED.replace("{dens}", "{dens} {text[8]}"),
        # Code and words that are no counts.
        "<pre>name: {name}</pre><pre>Dens: {dens}</pre>{text}",
        "<div><a href=/{name}>{name}</a><p>Dens: many</div>{text}",
    ],
)
def test_values_that_are_no_profile_are_content(post: str) -> None:
    assert text_of(thread_of(post)).count("Dens: ") == len(POSTS)
