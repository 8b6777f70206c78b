import pytest


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long: no option says how long."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("shared.transports.child.process.STEP_SECONDS", 0.1)
    monkeypatch.setattr("shared.client.connection.connection.CLOSING_SECONDS", 0.1)
    monkeypatch.setattr("shared.client.connection.restart.FIRST_SECONDS", 0.001)
    monkeypatch.setattr("shared.client.connection.restart.MAX_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("shared.client.connection.retry.BASE_SECONDS", 0.001)
