"""Cached lists: when a page is reused, and when it is made again."""

import pytest

from shared.errors import InvalidParams
from shared.protocol.signing import Signer
from shared.server.dispatch.listings import Listings
from tests.shared.server.peer import ERAS, server, talking

SIGNER = Signer(b"key")
ENTRIES = [{"name": name} for name in "abc"]


def page(listings, entries=ENTRIES, cursor=None, size=2):
    return listings.page("tools", list(entries), cursor, size=size, signer=SIGNER)


def test_a_page_is_reused_while_its_entries_are_unchanged():
    listings = Listings()
    first = page(listings)
    assert first["tools"] == ENTRIES[:2]
    assert page(listings) is first
    second = page(listings, cursor=first["nextCursor"])
    assert second["tools"] == ENTRIES[2:]
    assert "nextCursor" not in second
    assert page(listings, cursor=first["nextCursor"]) is second


def test_changed_entries_or_size_make_a_new_page():
    listings = Listings()
    first = page(listings)
    assert page(listings, ENTRIES[1:])["tools"] == ENTRIES[1:]
    assert page(listings)["tools"] == first["tools"]
    assert page(listings, size=3)["tools"] == ENTRIES


def test_a_cursor_belongs_to_its_list():
    listings = Listings()
    cursor = page(listings)["nextCursor"]
    assert listings.page("prompts", ENTRIES, None, size=2, signer=SIGNER)["prompts"] == ENTRIES[:2]
    with pytest.raises(InvalidParams):
        listings.page("prompts", ENTRIES, cursor, size=2, signer=SIGNER)


def test_an_empty_list_has_one_empty_page():
    assert page(Listings(), [])["tools"] == []


async def one() -> str:
    """One."""
    return ""


async def two() -> str:
    """Two."""
    return ""


@pytest.mark.parametrize("version", ERAS)
async def test_a_tool_added_or_removed_at_run_time_is_listed(version):
    app = server()
    app.tool()(one)
    async with app.open() as running, talking(running, version) as peer:
        features = running.features
        changes = (lambda: None, lambda: features.tool()(two), lambda: features.tools.remove("one"))
        for change, names in zip(changes, ("one", "one two", "two"), strict=True):
            change()
            for _ in range(2):
                tools = (await peer.request("tools/list"))["result"]["tools"]
                assert " ".join(tool["name"] for tool in tools) == names
