"""Cursors of queries, and what is kept for their next rows."""

from typing import NamedTuple

from servers.common.sql.query.cursors import Cursors


class Position(NamedTuple):
    """A position that nobody goes on from."""

    asked: bytes = b""


async def test_what_is_pressed_for_one_database_is_kept_for_another() -> None:
    released: list[str] = []

    async def release(kept: str) -> None:
        released.append(kept)

    cursors = Cursors[Position, str](release, 30.0)
    of_shop, of_music = [cursors.place(Position(), name) for name in ("shop", "music")]

    assert await cursors.press(lambda kept: kept == "music")
    assert not await cursors.press(lambda kept: kept == "music")

    assert released == ["music"]
    assert (cursors.take(of_shop), cursors.take(of_music)) == ("shop", None)
