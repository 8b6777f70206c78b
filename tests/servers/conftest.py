"""Replicas of any server that learn of changes only from each other."""

import threading
from typing import Any

import pytest


def see_nothing(_notices: Any, stop: threading.Event, seconds: float) -> set[str]:
    stop.wait(seconds)
    return set()


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables file notices and periodic scans of all servers; the filesystem server detects no change at all."""
    # Patched by path, since most tests here don't need these modules. No option sets their interval.
    monkeypatch.setattr("servers.common.notices.Notices.arm", lambda *_: False)
    monkeypatch.setattr("servers.common.notices.Notices.wait", see_nothing)
    monkeypatch.setattr("servers.filesystem.watch.watcher.check_target", lambda *_: (False, False))
    monkeypatch.setattr("servers.common.sql.watch.CHECK_SECONDS", 3_600.0)
    for name in ("_SWEEP_SECONDS", "_POLL_SECONDS"):
        monkeypatch.setattr(f"servers.prompts.library.watch.{name}", 3_600.0)


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.slow)])
def stores(request: pytest.FixtureRequest, blind: None) -> Any:
    """Returns the stores of both replicas."""
    if request.param == "redis":
        from tests.redis_stores import InRedis

        return InRedis(request.getfixturevalue("redis_server"))
    from shared.stores import memory

    return memory.Stores()
