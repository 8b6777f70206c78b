"""The turns of clients at sites."""

import pytest

from servers.fetch.features import state
from servers.fetch.server import app
from tests.servers.peers import inside, record


async def test_a_client_leaves_a_slot_of_each_site_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    given = record(monkeypatch, state, "Turns")
    async with inside(app, "--max-concurrent", "6", "--max-per-host", "4"):
        pass
    assert given["Turns"] == (6, 3)
