"""Servers that were lost are back sooner than the pauses between attempts would have them."""

import pytest


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.client.connection.restart.FIRST_SECONDS", 0.02)
