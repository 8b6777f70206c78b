"""Several pages at once."""

import json

import anyio
from hypothesis import given
from hypothesis import strategies as st

from servers.fetch.errors import FetchError
from servers.fetch.pages.snapshots import Snapshot, Wanted, fetch_all
from servers.fetch.pages.texts import join_pages, share_out
from servers.fetch.read.page import Loaded, Page

lengths = st.lists(st.integers(0, 1_000), min_size=1, max_size=20)
WANTED = [Wanted("http://a/"), Wanted("http://b/")]


def snapshot(text: str) -> Snapshot:
    return Snapshot(Loaded("http://a/", (), 200, {}, "text/html", None, b"", 0, False, 0.0), 1, Page(text, "text"))


async def no_one(_: int) -> None:
    """Is told, and does nothing."""


async def test_one_that_fails_disturbs_no_other() -> None:
    async def fetch(wanted: Wanted) -> Snapshot:
        if wanted is WANTED[0]:
            raise FetchError("dns", "unknown")
        return snapshot("b")

    failed, came = await fetch_all(WANTED, fetch, no_one, 60, 100)
    assert isinstance(failed, FetchError)
    assert isinstance(came, Snapshot)


async def test_what_came_until_the_end_is_given() -> None:
    async def fetch(wanted: Wanted) -> Snapshot:
        if wanted is WANTED[0]:
            await anyio.sleep_forever()
        return snapshot("b")

    late, came = await fetch_all(WANTED, fetch, no_one, 0.5, 100)
    assert isinstance(late, FetchError)
    assert late.code == "timeout"
    assert isinstance(came, Snapshot)


async def test_progress_counts_what_is_settled() -> None:
    counts = []

    async def fetch(_: Wanted) -> Snapshot:
        return snapshot("x")

    async def told(count: int) -> None:
        counts.append(count)

    await fetch_all(WANTED, fetch, told, 60, 100)
    assert counts == [1, 2]


async def test_of_large_pages_no_more_is_held_than_may_be_shown() -> None:
    async def fetch(_: Wanted) -> Snapshot:
        return snapshot("x" * 1_000)

    outcomes = await fetch_all(WANTED, fetch, no_one, 60, 100)
    assert [len(one.page.text) for one in outcomes if isinstance(one, Snapshot)] == [100, 100]
    many = join_pages(WANTED, outcomes, 100, 10_000)
    assert [facts["length"] for facts in many.facts] == [1_000, 1_000]
    assert "go on with start_index 50" in many.text


def test_pages_share_their_characters_and_errors_stand_in_their_place() -> None:
    many = join_pages(WANTED, [snapshot("a" * 100), FetchError("dns", "unknown name")], 30, 10_000)
    assert "a" * 30 in many.text
    assert "a" * 31 not in many.text
    assert "[2] http://b/\ndns: unknown name" in many.text
    assert many.facts[1] == {"error": "dns"}


def test_an_error_never_repeats_what_stands_before_the_host() -> None:
    many = join_pages([Wanted("http://user:secret@b/")], [FetchError("bad_url", "credentials")], 30, 10_000)
    assert "secret" not in many.text
    assert "secret" not in str(many.facts)


def test_what_is_told_beside_the_pages_is_part_of_the_size() -> None:
    far = "http://a/" + "x" * 10_000
    one = snapshot("y" * 100_000)
    long = one._replace(loaded=one.loaded._replace(url=far, redirects=(far,) * 10))
    wanted = [Wanted(f"http://a/{number}") for number in range(10)]
    many = join_pages(wanted, [long] * 10, 1_000_000, 300_000)
    assert 250_000 < len(json.dumps([many.text, many.facts], ensure_ascii=False)) < 305_000


def test_a_short_page_leaves_its_room_to_the_others() -> None:
    assert share_out([10, 1_000, 1_000], 110) == [10, 50, 50]


@given(lengths, st.integers(0, 10_000))
def test_nothing_is_given_twice_or_kept_back(lengths: list[int], total: int) -> None:
    given = share_out(lengths, total)
    assert all(0 <= share <= length for share, length in zip(given, lengths, strict=True))
    assert sum(given) == min(total, sum(lengths))
