import pytest


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long: no option says how long."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("shared.transports.process.PATIENCE", 0.1)
    monkeypatch.setattr("shared.client.connection.LAST_WORDS_SECONDS", 0.1)
    monkeypatch.setattr("shared.client.restart.FIRST_SECONDS", 0.001)
    monkeypatch.setattr("shared.client.restart.LONGEST_SECONDS", 0.001)
    monkeypatch.setattr("shared.client.retry.BASE_SECONDS", 0.001)
