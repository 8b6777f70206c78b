"""Snapshots of pages for later pieces, and fetching several pages at once."""

import anyio
import pytest

from servers.fetch.errors import FetchError
from servers.fetch.pages import snapshots
from servers.fetch.pages.snapshots import PageRequest, Snapshot, Snapshots, fetch_all
from servers.fetch.pages.texts import join_pages
from servers.fetch.read.page import LoadedPage, Page


def snapshot(text: str, image: bytes = b"") -> Snapshot:
    loaded = LoadedPage("http://a/", (), 200, {}, "text/html", None, b"", 0, False, 0.0)
    return Snapshot(loaded, len(text), Page(text, "html", image=image))


A, B, C = PageRequest("http://a/"), PageRequest("http://b/"), PageRequest("http://c/")


def test_get_returns_the_latest_snapshot() -> None:
    store = Snapshots()
    store.put("me", A, snapshot("old"))
    store.put("me", A, snapshot("new"))
    latest = store.get("me", A)
    assert latest is not None
    assert latest.page.text == "new"


def test_snapshots_are_private_to_a_client() -> None:
    store = Snapshots()
    store.put("me", A, snapshot("mine"))
    assert store.get("you", A) is None
    assert store.recent("you") == []


def test_each_format_has_its_own_snapshot() -> None:
    store = Snapshots()
    store.put(None, A, snapshot("as markdown"))
    assert store.get(None, A._replace(format="text")) is None


def test_the_least_recently_used_snapshot_is_evicted_first() -> None:
    store = Snapshots(pages=2)
    store.put(None, A, snapshot("a"))
    store.put(None, B, snapshot("b"))
    store.get(None, A)
    store.put(None, C, snapshot("c"))
    assert [request for request, _ in store.recent(None)] == [C, A]


def test_texts_and_images_are_bounded_together() -> None:
    store = Snapshots(characters=10)
    store.put(None, A, snapshot("12345"))
    store.put(None, B, snapshot("1", b"12345"))
    assert [request for request, _ in store.recent(None)] == [B]


def test_a_snapshot_beyond_the_limit_evicts_all_others() -> None:
    store = Snapshots(characters=10)
    store.put(None, A, snapshot("12345"))
    store.put(None, B, snapshot("12345678901"))
    assert [request for request, _ in store.recent(None)] == [B]


# Earlier versions


def test_a_replaced_text_is_an_earlier_version() -> None:
    store = Snapshots()
    old = snapshot("old")
    for page in (old, snapshot("new"), snapshot("new")):
        store.put("me", A, page)
    assert store.earlier("me", A, old.version) == "old"
    assert store.earlier("me", A, snapshot("new").version) is None
    assert store.earlier("you", A, old.version) is None
    assert store.earlier("me", B, old.version) is None


def test_earlier_versions_are_bounded_in_number_characters_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, value in (("MAX_EARLIER_VERSIONS", 2), ("MAX_EARLIER", 7), ("EARLIER_SECONDS", 0)):
        with monkeypatch.context() as patched:
            patched.setattr(snapshots, limit, value)
            store = Snapshots()
            for text in ("one", "two", "three", "four"):
                store.put("me", A, snapshot(text))
        assert store.earlier("me", A, snapshot("one").version) is None
        assert (store.earlier("me", A, snapshot("three").version) is None) == (limit == "EARLIER_SECONDS")


# Several pages at once

WANTED = [A, B]


async def ignore_progress(_: int) -> None:
    """Ignores the progress."""


async def test_a_failing_fetch_does_not_affect_the_others() -> None:
    async def fetch(request: PageRequest) -> Snapshot:
        if request is WANTED[0]:
            raise FetchError("dns", "unknown")
        return snapshot("b")

    failed, came = await fetch_all(WANTED, fetch, ignore_progress, 60, 100)
    assert isinstance(failed, FetchError)
    assert isinstance(came, Snapshot)


async def test_pages_loaded_before_the_timeout_are_returned() -> None:
    async def fetch(request: PageRequest) -> Snapshot:
        if request is WANTED[0]:
            await anyio.sleep_forever()
        return snapshot("b")

    late, came = await fetch_all(WANTED, fetch, ignore_progress, 0.1, 100)
    assert isinstance(late, FetchError)
    assert late.code == "timeout"
    assert isinstance(came, Snapshot)


async def test_progress_counts_finished_pages() -> None:
    counts = []

    async def fetch(_: PageRequest) -> Snapshot:
        return snapshot("x")

    async def count_progress(count: int) -> None:
        counts.append(count)

    await fetch_all(WANTED, fetch, count_progress, 60, 100)
    assert counts == [1, 2]


async def test_large_pages_are_cut_to_the_shown_length_while_loading() -> None:
    async def fetch(_: PageRequest) -> Snapshot:
        return snapshot("x" * 1_000)

    outcomes = await fetch_all(WANTED, fetch, ignore_progress, 60, 100)
    assert [len(one.page.text) for one in outcomes if isinstance(one, Snapshot)] == [100, 100]
    many = join_pages(WANTED, outcomes, 100, 10_000, 20_000)
    assert [facts["length"] for facts in many.facts] == [1_000, 1_000]
    assert "continue with start_index 50" in many.text
