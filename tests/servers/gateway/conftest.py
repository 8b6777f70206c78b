"""Servers that were lost are back sooner than the pauses between attempts would have them."""

import pytest

from tests.servers.bundle.conftest import _no_variables  # noqa: F401


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.client.connection.restart.FIRST_SECONDS", 0.02)
