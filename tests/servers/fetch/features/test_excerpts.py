"""The arguments `find` and `since` of `fetch`, called by a client."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from pydantic_core import to_json

from servers.fetch.server import app
from servers.fetch.settings import Settings
from shared.protocol.identity import Principal
from shared.stores.memory import Stores
from tests.servers.common.documents.pdfs import written
from tests.servers.fetch.serving import served
from tests.servers.fetch.sites import Site, answer, opened_site
from tests.servers.peers import Peer
from tests.shared.server.peer import talking
from tests.wire import STATELESS

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILLER = "The weather of the coast is mild in winter, and in summer a wind comes from the sea. " * 10
PAGE = (
    f"<main><h1>Ovens</h1><p>{FILLER}</p><h2>Cleaning</h2><p>Crusts come off with vinegar.</p><p>{FILLER}</p></main>"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def peer() -> AsyncIterator[Peer]:
    async with served() as peer:
        yield peer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with opened_site({}) as site:
        yield site


def add_page(site: Site, page: str) -> str:
    """Adds a page to the site, and returns its path."""
    path = f"/{len(site.routes)}"
    change_page(site, path, page)
    return path


def change_page(site: Site, path: str, page: str) -> None:
    site.routes[path] = answer(page, content_type="text/html")


def read_version(text: str) -> str:
    match = re.search(r"UTC(?:, from the cache)?, version ([0-9a-f]{8})\n", text)
    assert match is not None, text
    return match[1]


async def test_the_start_index_of_a_passage_continues_the_page_there(peer: Peer, site: Site) -> None:
    url = site.url(add_page(site, PAGE))
    result = await peer.call("fetch", url=url, find="What about crusts?", max_length=100)
    text = result["content"][0]["text"]
    assert "note: 1 of 1 passages with these words" in text
    place = re.search(r"not to be trusted[^\n]*\ntitle: Ovens\n\n\[start_index (\d+)\] Ovens > Cleaning\n", text)
    assert place is not None, text
    assert result["_meta"]["startIndexes"] == [int(place[1])]
    assert result["_meta"]["length"] > 1_000
    assert "Crusts come off with vinegar." in await peer.text(
        "fetch", url=url, start_index=int(place[1]), max_length=30
    )


@pytest.mark.parametrize("excerpt", ["find", "since"])
async def test_an_excerpt_comes_from_the_cached_page_unless_refreshed(peer: Peer, site: Site, excerpt: str) -> None:
    path = f"/{len(site.routes)}"
    url, versions = site.url(path), []
    for words in ("old", "new"):
        page = f"<main><p>Crusts are {words}.</main>"
        site.routes[path] = answer(page, content_type="text/html", cache_control="max-age=3600")
        versions.append(read_version(await peer.text("fetch", url=url, refresh=not versions)))
    arguments = {"url": url, excerpt: "crusts" if excerpt == "find" else versions[0]}
    assert versions[0] == versions[1]
    assert "new" not in await peer.text("fetch", **arguments)
    assert "Crusts are new." in await peer.text("fetch", **arguments, refresh=True)


async def test_find_without_a_match_is_an_error(peer: Peer, site: Site) -> None:
    url = site.url(add_page(site, PAGE))
    assert (await peer.error("fetch", url=url, find="submarine")).startswith("not_found: the page has none of these")


async def test_find_since_and_start_index_exclude_each_other(peer: Peer, site: Site) -> None:
    url = site.url(add_page(site, PAGE))
    for arguments in ({"find": "a", "since": "b"}, {"find": "a", "start_index": 1}, {"since": "a", "start_index": 1}):
        assert (await peer.error("fetch", url=url, **arguments)).startswith(
            "bad_argument: find, since and start_index"
        )


async def test_since_lists_the_changes_since_any_stored_version(peer: Peer, site: Site) -> None:
    path = add_page(site, PAGE)
    first = read_version(await peer.text("fetch", url=site.url(path)))
    unchanged = await peer.text("fetch", url=site.url(path), since=first)
    assert unchanged.endswith(f"note: unchanged since version {first}")
    change_page(site, path, PAGE.replace("vinegar", "soap"))
    text = await peer.text("fetch", url=site.url(path), since=first)
    assert f"note: 1 of 1 changes since version {first}\n" in text
    assert "] Ovens > Cleaning\n- Crusts come off with vinegar.\n+ Crusts come off with soap.\n" in text
    second = read_version(text)
    change_page(site, path, PAGE.replace("vinegar", "water"))
    assert "+ Crusts come off with water." in await peer.text("fetch", url=site.url(path), since=second)
    assert "- Crusts come off with vinegar." in await peer.text("fetch", url=site.url(path), since=first)


async def test_since_an_unknown_version_is_an_error_with_advice(peer: Peer, site: Site) -> None:
    url = site.url(add_page(site, PAGE))
    error = await peer.error("fetch", url=url, since="00000000")
    assert error == "bad_argument: that version of the page is no longer stored. Fetch the page without since."


async def test_since_refuses_a_version_of_another_page(peer: Peer, site: Site) -> None:
    version = read_version(await peer.text("fetch", url=site.url(add_page(site, PAGE))))
    other = site.url(add_page(site, "<main><h1>Other</h1><p>Another page altogether, of a few words.</p></main>"))
    assert (await peer.error("fetch", url=other, since=version)).startswith(
        "bad_argument: that version of the page is"
    )


async def test_since_returns_the_whole_page_when_too_much_changed(peer: Peer, site: Site) -> None:
    lines = "".join(f"{number} old\n" for number in range(1_600))
    path = add_page(site, f"<pre>{lines}</pre>")
    version = read_version(await peer.text("fetch", url=site.url(path)))
    change_page(site, path, f"<pre>{lines.replace('old', 'new')}</pre>")
    text = await peer.text("fetch", url=site.url(path), since=version)
    assert f"note: too much has changed since version {version} for a comparison" in text
    assert "1 new\n" in text


async def test_only_the_first_piece_of_a_page_has_a_version(peer: Peer, site: Site) -> None:
    url = site.url(add_page(site, PAGE))
    assert read_version(await peer.text("fetch", url=url, max_length=500))
    assert ", version " not in await peer.text("fetch", url=url, start_index=500)


async def test_since_accepts_a_version_from_another_replica() -> None:
    stores, settings = Stores(), Settings(allow_private=["127.0.0.1:*"])
    async with (
        opened_site({}) as site,
        app.open(settings, stores=stores) as one,
        app.open(settings, stores=stores) as other,
        talking(one, STATELESS) as here,
        talking(other, STATELESS) as there,
    ):
        path = add_page(site, PAGE)
        first = (await here.call("fetch", url=site.url(path)))["result"]["_meta"]["version"]
        change_page(site, path, PAGE.replace("vinegar", "soap"))
        result = await there.call("fetch", url=site.url(path), since=first)
        assert "+ Crusts come off with soap." in result["result"]["content"][0]["text"]


async def test_a_page_continues_at_any_replica_for_the_same_user_only() -> None:
    stores, settings = Stores(), Settings(allow_private=["127.0.0.1:*"])
    async with (
        opened_site({}) as site,
        app.open(settings, stores=stores) as one,
        app.open(settings, stores=stores) as other,
        talking(one, STATELESS, principal=Principal("ada")) as ada,
        talking(other, STATELESS, principal=Principal("ada")) as ada_there,
        talking(other, STATELESS, principal=Principal("bob")) as bob,
    ):
        path = add_page(site, PAGE)
        await ada.call("fetch", url=site.url(path), max_length=100)
        change_page(site, path, PAGE.replace("vinegar", "soap"))
        assert "vinegar" in await ada_there.text("fetch", url=site.url(path), start_index=1)
        text = await bob.text("fetch", url=site.url(path), start_index=1)
        # Whatever replica has shown the page last, all continue that text.
        await ada_there.call("fetch", url=site.url(path), max_length=100, refresh=True)
        assert "soap" in await ada.text("fetch", url=site.url(path), start_index=1)
    assert "this was fetched again" in text
    assert "Crusts come off with soap." in text


@pytest.mark.parametrize(("part", "of"), [("pages", ["1", "2"]), ("section", ["Alpha", "Beta"])])
async def test_each_part_of_a_page_continues_at_another_replica(part: str, of: list[str]) -> None:
    texts = {"alpha": "alpha " * 40, "beta": "beta " * 40}
    page = "".join(f"<h2>{name.title()}</h2><p>{text}</p>" for name, text in texts.items())
    document = answer(written([*texts.values()]), content_type="application/pdf")
    stores, settings = Stores(), Settings(allow_private=["127.0.0.1:*"])
    async with (
        opened_site({"/a": document if part == "pages" else answer(page, content_type="text/html")}) as site,
        app.open(settings, stores=stores) as here,
        app.open(settings, stores=stores) as there,
        talking(here, STATELESS, principal=Principal("ada")) as ada,
        talking(there, STATELESS, principal=Principal("ada")) as ada_there,
    ):
        for value in of:
            await ada.call("fetch", url=site.url("/a"), max_length=20, **{part: value})
        for value, (name, text) in zip(of, texts.items(), strict=True):
            rest = await ada_there.text("fetch", url=site.url("/a"), start_index=20, **{part: value})
            assert (text[60:] in rest, rest.count("alpha") > 9) == (True, name == "alpha")


async def test_find_omits_and_counts_passages_beyond_max_text(site: Site) -> None:
    sections = "".join(f"<h2>Oven {n}</h2><p>Oven {n} is cleaned with vinegar. {FILLER}</p>" for n in range(40))
    url = site.url(add_page(site, f"<main><h1>Ovens</h1>{sections}</main>"))
    async with served("--max-text", "9000") as small:
        text = await small.text("fetch", url=url, find="vinegar", max_length=20_000)
    note = re.search(r"note: (\d+) of 40 passages", text)
    assert note is not None
    passages = text.split("[start_index ")[1:]
    assert len(passages) == int(note[1])
    assert all("from the sea." in passage for passage in passages)
    # Another passage would not fit.
    assert 9_000 - len(to_json(passages[0])) < len(to_json(text)) <= 9_000
