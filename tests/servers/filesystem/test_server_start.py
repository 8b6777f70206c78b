"""What the server says when it starts."""

import logging

import pytest

from servers.filesystem import server
from servers.filesystem.settings import Settings


@pytest.mark.parametrize("race_free", [True, False])
async def test_it_says_so_where_the_guard_is_weaker(root, race_free, monkeypatch, caplog):
    monkeypatch.setattr(server, "RACE_FREE", race_free)
    with caplog.at_level(logging.WARNING):
        async with server.app.open(Settings(roots=[root])):
            pass
    assert ("checked before and after they are opened" in caplog.text) == (not race_free)
