"""A supervised server, which is reopened whenever it fails."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from shared.protocol.types.base import Implementation
from shared.server.run import Run
from shared.server.server import Server
from shared.telemetry import supervised
from shared.telemetry.logs import server_name
from shared.telemetry.supervised import SupervisedServer

LIMIT = 30.0


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "FIRST_PAUSE_SECONDS", 0.001)


class Watched:
    """A supervised server with these lifespans in order, and records of its states."""

    def __init__(self, *lives: Callable[[], AsyncIterator[None]]) -> None:
        self.lives = list(lives)
        self.one = SupervisedServer("one", self.open)
        self.states: list[str] = []
        self.pauses: list[float] = []
        self.seconds = LIMIT
        """The time limit of `close`, and its result."""
        self.ended: bool | None = None
        self._moved = anyio.Event()
        self.one.watch(self._record)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Run[Any]]:
        app, life = Server[None](Implementation(name="one", version="1")), asynccontextmanager(self.lives.pop(0))

        @app.lifespan
        async def living(_opening: Any) -> AsyncIterator[None]:
            async with life():
                yield

        async with app.open() as running:
            yield running

    def _record(self) -> None:
        assert (self.one.running is None) is bool(self.one.reason)
        self.states.append(self.one.reason or "open")
        self.pauses.append(self.one.pause)
        self._moved.set()

    async def until(self, state: str, times: int = 1) -> None:
        """Waits until a state was recorded `times` times."""
        while self.states.count(state) < times:
            self._moved = anyio.Event()
            await self._moved.wait()


@asynccontextmanager
async def living(watched: Watched) -> AsyncIterator[Watched]:
    """Runs the server during the block, and closes it."""
    with anyio.fail_after(LIMIT):
        watched.one.start()
        yield watched
        watched.ended = await watched.one.close(watched.seconds)


async def steady() -> AsyncIterator[None]:
    yield


async def crash() -> AsyncIterator[None]:
    raise RuntimeError("a secret detail")
    yield


async def leave() -> AsyncIterator[None]:
    raise SystemExit(3)
    yield


async def hang() -> AsyncIterator[None]:
    await anyio.sleep_forever()
    yield


async def fail_later() -> AsyncIterator[None]:
    async def break_down() -> None:
        raise RuntimeError("a secret detail")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(break_down)
        yield


async def end_by_itself() -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.cancel_scope.cancel()
        yield


async def fail_at_the_end() -> AsyncIterator[None]:
    yield
    raise RuntimeError("at the end")


STOPPED, FAILED = "it has stopped", "it failed while serving"


async def test_a_healthy_server_is_open_until_it_is_stopped() -> None:
    watched = Watched(steady)
    assert (watched.one.running, watched.one.reason) == (None, "it is starting")
    async with living(watched):
        await watched.until("open")
        running = watched.one.running
        assert running is not None
        assert running.server.implementation.name == "one"
    assert watched.states == ["open", STOPPED, STOPPED]
    assert running.calls.is_closing


@pytest.mark.parametrize(
    ("life", "states"),
    [
        (crash, ["it could not start (RuntimeError); the log says more"]),
        (leave, ["it could not start (RuntimeError); the log says more"]),
        (
            fail_later,
            ["open", "it failed while serving", "it failed while serving (RuntimeError); the log says more"],
        ),
        (
            end_by_itself,
            [
                "open",
                "it failed while serving",
                "it failed while serving (it stopped by itself); the log says more",
            ],
        ),
    ],
)
async def test_a_failed_server_is_reopened(life: Any, states: list[str]) -> None:
    async with living(Watched(life, steady)) as watched:
        while watched.states[len(states) :] != ["open"]:
            await anyio.lowlevel.checkpoint()
        assert watched.states == [*states, "open"]
        assert watched.one.running is not None


async def test_each_short_lifetime_doubles_the_pause_up_to_the_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "MAX_PAUSE_SECONDS", 0.005)
    async with living(Watched(crash, fail_later, crash, crash, crash, steady)) as watched:
        await watched.until("open", 2)
        failures = [pause for pause, state in zip(watched.pauses, watched.states, strict=True) if "log" in state]
        assert failures == [0.001, 0.002, 0.004, 0.005, 0.005]


async def test_a_long_lifetime_resets_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    async with living(Watched(crash, crash, fail_later, steady)) as watched:
        monkeypatch.setattr(supervised, "STEADY_SECONDS", 0.0)
        await watched.until("open", 2)
        assert watched.pauses[-1] == 0.001


async def test_a_repeated_failure_is_logged_in_a_line(caplog: pytest.LogCaptureFixture) -> None:
    async with living(Watched(crash, crash, crash, steady)) as watched:
        await watched.until("open")
    assert caplog.text.count("RuntimeError: a secret detail") == 1
    assert caplog.text.count("the server failed again in the same way; restarting it in 0.00") == 2


async def test_an_os_error_at_startup_is_logged_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse() -> AsyncIterator[None]:
        raise FileNotFoundError(2, "No such file", "/there/is/none")
        yield

    async with living(Watched(refuse, steady)) as watched:
        await watched.until("open")
        assert "/there" not in str(watched.states)
    assert "can't start: [Errno 2] No such file: '/there/is/none'" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("life", [hang, crash])
async def test_stopping_does_not_wait_for_a_server_that_is_not_open(
    life: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised, "FIRST_PAUSE_SECONDS", 10 * LIMIT)
    async with living(Watched(life)) as watched:
        await anyio.wait_all_tasks_blocked()
    assert watched.states[-1] == STOPPED


async def test_a_failure_while_stopping_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with living(Watched(fail_at_the_end)) as watched:
        await watched.until("open")
    assert "the server did not stop cleanly" in caplog.text
    assert watched.states[-1] == STOPPED


async def test_a_server_that_closes_too_slowly_is_cancelled() -> None:
    async def linger() -> AsyncIterator[None]:
        yield
        await anyio.sleep_forever()

    async with living(Watched(linger)) as watched:
        await watched.until("open")
        watched.seconds = 0.001
    assert (watched.ended, watched.states) == (True, ["open", STOPPED, STOPPED])


async def test_a_server_that_ignores_cancellation_is_abandoned(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervised, "CANCEL_SECONDS", 0.001)
    go_on = anyio.Event()

    async def cling() -> AsyncIterator[None]:
        yield
        with anyio.CancelScope(shield=True):
            await go_on.wait()

    async with living(Watched(cling)) as watched:
        await watched.until("open")
        watched.seconds = 0.001
    assert watched.ended is False
    assert "the server did not stop in time and was abandoned" in caplog.text
    go_on.set()
    await watched.until(STOPPED, 2)


@pytest.mark.parametrize(("alone", "named"), [(False, "one"), (True, None)])
async def test_log_lines_name_the_server_unless_it_is_the_only_one(alone: bool, named: str | None) -> None:
    names = list[str | None]()

    @asynccontextmanager
    async def open_it() -> AsyncIterator[Run[Any]]:
        names.append(server_name.get())
        async with Server[None](Implementation(name="one", version="1")).open() as running:
            yield running

    one = SupervisedServer("one", open_it, alone=alone)
    one.start()
    while not names:
        await anyio.lowlevel.checkpoint()
    assert await one.close(LIMIT)
    assert (names, server_name.get()) == ([named], None)


async def test_a_removed_watcher_is_not_called() -> None:
    watched, states = Watched(steady), list[str]()
    unwatch = watched.one.watch(lambda: states.append(watched.one.reason))
    async with living(watched):
        await watched.until("open")
        unwatch()
    assert states == [""]
