"""Cursors of queries, and the resources kept for their next rows."""

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.query.cursors import Cursors, Position, fingerprint

REQUEST = fingerprint("somebody", "a query")
START = Position(REQUEST, 10, fingerprint("a state"), False)


async def release_nothing(_: str) -> None:
    """Do nothing: no resource is kept."""


async def test_only_cursors_of_the_database_in_need_are_released() -> None:
    released: list[str] = []

    async def release(kept: str) -> None:
        released.append(kept)

    cursors = Cursors[str](release, 30.0)
    of_shop, of_music = [cursors.make_cursor(START, name) for name in ("shop", "music")]

    assert await cursors.release_oldest(lambda kept: kept == "music")
    assert not await cursors.release_oldest(lambda kept: kept == "music")

    assert released == ["music"]
    assert (cursors.take(of_shop), cursors.take(of_music)) == ("shop", None)


@pytest.mark.parametrize("position", [START, START._replace(offset=2**31 - 1, changed=True)])
def test_a_cursor_contains_its_position_for_every_replica(position: Position) -> None:
    here, there = Cursors[str](release_nothing, 30.0), Cursors[str](release_nothing, 30.0)
    assert there.find(here.make_cursor(position, None), REQUEST) == position


def test_invalid_cursors_and_those_of_other_queries_are_refused() -> None:
    cursors = Cursors[str](release_nothing, 30.0)
    beyond = cursors.make_cursor(START._replace(offset=2**31), None)
    other = cursors.make_cursor(START._replace(request=fingerprint("somebody else")), None)
    for cursor in (beyond, other, "", "ä", "made up", "_" * 40):
        with pytest.raises(SqlError) as caught:
            cursors.find(cursor, REQUEST)
        assert caught.value.code == "bad_cursor"
