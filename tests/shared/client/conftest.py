import pytest


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the pauses before restarts and retries, which no option sets."""
    monkeypatch.setattr("shared.client.connection.restart.FIRST_SECONDS", 0.001)
    monkeypatch.setattr("shared.client.connection.restart.MAX_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("shared.client.connection.retry.BASE_SECONDS", 0.001)
