"""A server that is opened again whenever it fails."""

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
    monkeypatch.setattr(supervised, "FIRST_SECONDS", 0.001)


class Patient:
    """A server whose lives are told beforehand, and what who watches it has heard."""

    def __init__(self, *lives: Callable[[], AsyncIterator[None]]) -> None:
        self.lives = list(lives)
        self.one = SupervisedServer("one", self.open)
        self.heard: list[str] = []
        self.pauses: list[float] = []
        self.seconds = LIMIT
        """How long it has to close, and whether it did."""
        self.ended: bool | None = None
        self._moved = anyio.Event()
        self.one.watch(self._hear)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Run[Any]]:
        app, life = Server[None](Implementation(name="one", version="1")), asynccontextmanager(self.lives.pop(0))

        @app.lifespan
        async def living(_opening: Any) -> AsyncIterator[None]:
            async with life():
                yield

        async with app.open() as running:
            yield running

    def _hear(self) -> None:
        assert (self.one.running is None) is bool(self.one.reason)
        self.heard.append(self.one.reason or "open")
        self.pauses.append(self.one.pause)
        self._moved.set()

    async def until(self, said: str, times: int = 1) -> None:
        """Waits until that was heard so many times."""
        while self.heard.count(said) < times:
            self._moved = anyio.Event()
            await self._moved.wait()


@asynccontextmanager
async def living(patient: Patient) -> AsyncIterator[Patient]:
    """As long as the block it lives, and is closed then."""
    with anyio.fail_after(LIMIT):
        patient.one.start()
        yield patient
        patient.ended = await patient.one.close(patient.seconds)


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


async def test_one_that_lives_is_open_until_it_is_to_leave() -> None:
    patient = Patient(steady)
    assert (patient.one.running, patient.one.reason) == (None, "it is starting")
    async with living(patient):
        await patient.until("open")
        running = patient.one.running
        assert running is not None
        assert running.server.implementation.name == "one"
    assert patient.heard == ["open", STOPPED, STOPPED]
    assert running.calls.is_closing


@pytest.mark.parametrize(
    ("life", "heard"),
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
async def test_one_that_fails_is_opened_again(life: Any, heard: list[str]) -> None:
    async with living(Patient(life, steady)) as patient:
        while patient.heard[len(heard) :] != ["open"]:
            await anyio.lowlevel.checkpoint()
        assert patient.heard == [*heard, "open"]
        assert patient.one.running is not None


async def test_each_short_life_doubles_the_pause_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "MAX_PAUSE_SECONDS", 0.005)
    async with living(Patient(crash, fail_later, crash, crash, crash, steady)) as patient:
        await patient.until("open", 2)
        failures = [pause for pause, said in zip(patient.pauses, patient.heard, strict=True) if "log" in said]
        assert failures == [0.001, 0.002, 0.004, 0.005, 0.005]


async def test_after_a_long_life_the_pause_is_the_first_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with living(Patient(crash, crash, fail_later, steady)) as patient:
        monkeypatch.setattr(supervised, "STEADY_SECONDS", 0.0)
        await patient.until("open", 2)
        assert patient.pauses[-1] == 0.001


async def test_what_goes_wrong_again_is_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async with living(Patient(crash, crash, crash, steady)) as patient:
        await patient.until("open")
    assert caplog.text.count("RuntimeError: a secret detail") == 1
    assert caplog.text.count("the server failed again in the same way; restarting it in 0.00") == 2


async def test_what_an_operator_can_mend_is_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse() -> AsyncIterator[None]:
        raise FileNotFoundError(2, "No such file", "/there/is/none")
        yield

    async with living(Patient(refuse, steady)) as patient:
        await patient.until("open")
        assert "/there" not in str(patient.heard)
    assert "can't start: [Errno 2] No such file: '/there/is/none'" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("life", [hang, crash])
async def test_nobody_waits_for_one_that_is_not_open(life: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "FIRST_SECONDS", 10 * LIMIT)
    async with living(Patient(life)) as patient:
        await anyio.wait_all_tasks_blocked()
    assert patient.heard[-1] == STOPPED


async def test_one_that_fails_at_its_end_tells_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with living(Patient(fail_at_the_end)) as patient:
        await patient.until("open")
    assert "the server did not stop cleanly" in caplog.text
    assert patient.heard[-1] == STOPPED


async def test_one_that_takes_too_long_to_close_is_cancelled() -> None:
    async def linger() -> AsyncIterator[None]:
        yield
        await anyio.sleep_forever()

    async with living(Patient(linger)) as patient:
        await patient.until("open")
        patient.seconds = 0.001
    assert (patient.ended, patient.heard) == (True, ["open", STOPPED, STOPPED])


async def test_one_that_will_not_end_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervised, "LAST_SECONDS", 0.001)
    go_on = anyio.Event()

    async def cling() -> AsyncIterator[None]:
        yield
        with anyio.CancelScope(shield=True):
            await go_on.wait()

    async with living(Patient(cling)) as patient:
        await patient.until("open")
        patient.seconds = 0.001
    assert patient.ended is False
    assert "the server did not stop in time and was abandoned" in caplog.text
    go_on.set()
    await patient.until(STOPPED, 2)


@pytest.mark.parametrize(("alone", "named"), [(False, "one"), (True, None)])
async def test_log_lines_name_it_where_there_are_others(alone: bool, named: str | None) -> None:
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


async def test_who_has_stopped_watching_hears_no_more() -> None:
    patient, heard = Patient(steady), list[str]()
    unwatch = patient.one.watch(lambda: heard.append(patient.one.reason))
    async with living(patient):
        await patient.until("open")
        unwatch()
    assert heard == [""]
