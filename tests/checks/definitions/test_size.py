"""The size of the definitions that a model reads before its first call."""

import json
from pathlib import Path

import pytest

from tests.checks.definitions.listings import OFFERS, Offer
from tests.servers.peers import OLDER
from tests.wire import NEWEST_HANDSHAKE, STATELESS

MOST = 9_000
"""Bytes of the result of `tools/list`, as compact JSON in UTF-8."""
OTHER_MOST = {"everything": 15_000, "sqlite": 4_000, "postgres": 4_500, "fetch": 2_200, "prompts": 1_000}
"""The same for the bench server, which no model works with, and for those that change nothing."""


@pytest.mark.parametrize("version", [*OLDER, NEWEST_HANDSHAKE, STATELESS])
@pytest.mark.parametrize("offer", OFFERS, ids=str)
async def test_the_definitions_of_all_tools_are_short(offer: Offer, version: str, tmp_path: Path) -> None:
    result = await offer.listed(tmp_path, version)
    most = OTHER_MOST.get(str(offer), MOST)
    assert len(json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode()) <= most
