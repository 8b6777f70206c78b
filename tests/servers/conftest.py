"""Replicas of any server that learn of each other's work from each other alone."""

import threading
from typing import Any

import pytest


def see_nothing(_notices: Any, stop: threading.Event, seconds: float) -> set[str]:
    stop.wait(seconds)
    return set()


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server has notices, or looks for changes by the clock; that of files sees nothing even where it looks."""
    # Patched by their paths: what loads them is of no use to most tests here. How often they look nobody may set.
    monkeypatch.setattr("servers.common.notices.Notices.arm", lambda *_: False)
    monkeypatch.setattr("servers.common.notices.Notices.wait", see_nothing)
    monkeypatch.setattr("servers.filesystem.watch.watcher.check_target", lambda *_: (False, False))
    monkeypatch.setattr("servers.common.sql.watch.SWEEP_SECONDS", 3_600.0)
    for name in ("_SWEEP_SECONDS", "_POLL_SECONDS"):
        monkeypatch.setattr(f"servers.prompts.library.watch.{name}", 3_600.0)


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.slow)])
def stores(request: pytest.FixtureRequest, blind: None) -> Any:
    """The stores that both replicas have."""
    if request.param == "redis":
        from tests.redis_stores import InRedis

        return InRedis(request.getfixturevalue("redis_server"))
    from shared.stores import memory

    return memory.Stores()
