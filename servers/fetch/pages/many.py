"""Several pages at once, with one budget."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import anyio

from servers.fetch.errors import FetchError
from servers.fetch.pages.snapshots import Snapshot, Wanted
from servers.fetch.pages.texts import Piece, cut, explained, facts_of, text_of
from shared.kit.text import join_lines

__all__ = ["Many", "fetch_all", "many_of", "shares"]

_LATE = FetchError("timeout", "the call had to end before this page came", "Fetch it by itself.")

Outcome = Snapshot | FetchError


class Many(NamedTuple):
    """The text of several pages, and the facts of each."""

    text: str
    facts: list[dict[str, Any]]


async def fetch_all(
    wanted: Sequence[Wanted],
    fetch: Callable[[Wanted], Awaitable[Snapshot]],
    told: Callable[[int], Awaitable[None]],
    seconds: float,
    characters: int,
) -> list[Outcome]:
    """The beginning of each page, or why it did not come, in order; what is not there after `seconds` is given up.
    `told` is called with the number of pages that are settled."""
    outcomes: list[Outcome] = [_LATE] * len(wanted)
    settled = 0

    async def settle(at: int) -> None:
        nonlocal settled
        try:
            outcomes[at] = (await fetch(wanted[at])).beginning(characters)
        except FetchError as error:
            outcomes[at] = error
        settled += 1
        await told(settled)

    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as tasks:
            for at in range(len(wanted)):
                tasks.start_soon(settle, at)
    return outcomes


def _beside(outcome: Outcome) -> int:
    """Bytes of JSON for what is told of a page besides its text: sites may make that long, too."""
    if isinstance(outcome, FetchError):
        return len(json.dumps(explained(outcome)))
    nothing = Piece("", 0, 0)
    return len(json.dumps([text_of(outcome, nothing), facts_of(outcome, nothing)]))


def many_of(wanted: Sequence[Wanted], outcomes: Sequence[Outcome], characters: int, size: int) -> Many:
    """All pages in one text of about `characters`; with the facts it has some `size` bytes of JSON at most."""
    room = max(size - sum(map(_beside, outcomes)), size // 4) // len(wanted)
    given = shares([len(one.page.text) if isinstance(one, Snapshot) else 0 for one in outcomes], characters)
    texts, facts = [], []
    for one, outcome, share in zip(wanted, outcomes, given, strict=True):
        if isinstance(outcome, Snapshot):
            piece = cut(outcome.page.text, 0, share, room)
            piece = piece._replace(total=piece.total + outcome.left_out)
            texts.append(text_of(outcome, piece))
            facts.append(facts_of(outcome, piece))
        else:
            # What is no URL may hold credentials anywhere.
            texts.append(f"{'' if outcome.code == 'bad_url' else join_lines(one.url)}\n{explained(outcome)}")
            facts.append({"error": outcome.code})
    return Many("\n\n".join(f"[{at}] {text}" for at, text in enumerate(texts, 1)), facts)


def shares(lengths: Sequence[int], total: int) -> list[int]:
    """How many of its characters each page may show, where all together may show `total`: the same for each, and
    what a short one leaves goes to the others."""
    given = [0] * len(lengths)
    left = total
    shortest_first = sorted(range(len(lengths)), key=lambda which: lengths[which])
    for done, which in enumerate(shortest_first):
        given[which] = min(lengths[which], left // (len(lengths) - done))
        left -= given[which]
    return given
