"""Threads: posts with their authors, without their action links."""

import pytest

from tests.servers.fetch.read.html.content.test_main_content import WORDS, text_of

NAMES = ("vixen", "reynard", "tod", "vixen", "brock")


def thread_of(author: str) -> str:
    """Makes a thread of posts with authors, actions, numbers and dates."""
    posts = (
        f"<div class='post post-{number}'><div class=text><p>Post {number}: {WORDS}</p></div><div class=meta>"
        f"<div class=author>{author.format(name=name, number=number)}</div>"
        f"<ul><li><a href=/posts/{number}>#{number}</a><li><a href=/posts/{number}/reply>Reply</a></ul></div></div>"
        for number, name in enumerate(NAMES)
    )
    return "".join(posts)


@pytest.mark.parametrize(
    "author",
    [
        "<a href=/users/{number}/{name}>{name}</a>",
        "<h4><a href=/members/{name} class='name {name}'>{name}</a></h4>",
        "By <a href='/who?{name}'>{name}</a>",
    ],
)
def test_posts_keep_their_authors(author: str) -> None:
    words = text_of(thread_of(author)).split()
    assert [words.count(name) for name in ("vixen", "reynard", "tod", "brock")] == [2, 1, 1, 1]
    assert "Reply" not in words


def test_a_link_repeated_in_every_post_is_not_an_author() -> None:
    assert "Follow" not in text_of(thread_of("<a href=/users/{number}>Follow</a>"))
