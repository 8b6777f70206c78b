"""Notes about redirects that a browser would follow."""

import pytest

from servers.fetch.read.html.page import read_html

URL = "https://example.com/docs/page.html"
NOTE = 'A script may redirect a browser from here to "https://example.com/new".'


def notes(html: str) -> tuple[str, ...]:
    return read_html(f"<title>Moved</title>{html}", URL, "markdown", None).notes


def test_a_delayed_refresh_is_noted_with_its_target() -> None:
    html = '<meta http-equiv=refresh content="5; url=/next"><p>You will be taken there.'
    assert notes(html) == ('A browser would be redirected from here to "https://example.com/next" after 5 s.',)
    assert "https://example.com/else/next" in notes(f"<base href=/else/>{html.replace('/next', 'next')}")[0]
    for content in ("300", "300; url=page.html", "x; url=/next", "5; url=javascript:alert(1)"):
        assert not notes(f'<meta http-equiv=refresh content="{content}"><p>Text.')


@pytest.mark.parametrize(
    "script",
    [
        "window.location = '/new'",
        'location.href="/new";',
        "window.top.location.replace(`/new`)",
        "setTimeout(function () { document.location.assign('/new') }, 3000)",
        r'location.replace("https:\/\/example.com\u002fnew")',
        "location.replace('/new' + window.location.hash)",
        "const target = '/new';\nlocation.href = target;",
    ],
)
def test_a_redirect_by_script_is_noted_with_its_target(script: str) -> None:
    assert NOTE in notes(f"<script>{script}</script><p>You will be taken there.")


def test_a_redirect_by_onload_is_noted_with_its_target() -> None:
    assert NOTE in notes("<body onload=\"location.href='/new'\">")


@pytest.mark.parametrize(
    "script",
    [
        "location.href = '/new?id=' + id",
        "if (location.href == '/new') go()",
        "place.location = '/new'",
        "location.href = 'page.html#top'",
        "location.href = 'javascript:go()'",
        "location.href = unknown",
    ],
)
def test_a_redirect_to_an_unknown_target_is_not_noted(script: str) -> None:
    assert not any("redirect" in note for note in notes(f"<script>{script}</script><p>Text."))


def test_scripts_of_a_page_with_text_are_not_searched() -> None:
    words = "The quick brown fox jumps over the lazy dog. " * 10
    assert not notes(f"<script>function login() {{ location.href = '/new' }}</script><p>{words}")
