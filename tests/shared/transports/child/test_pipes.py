"""`Child`: full pipes, and pipes without a reader."""

import sys
import time

import anyio
import pytest

from shared.transports.child.pipes import MAX_WAITING_BYTES, Child
from shared.transports.child.process import ProcessStream, start_process

READ_AT_ONCE = 262_144
"""What asyncio reads from a pipe at most."""
SLEEP = "import signal; signal.pause()"
FLOOD = "import sys; sys.stdout.buffer.write(bytes(8_000_000))"
ENDLESS = "import sys\nwhile True: sys.stdout.buffer.write(bytes(100_000))"
LATE = "import sys; sys.stdin.buffer.read(1); print(len(sys.stdin.buffer.read(4_000_000)), flush=True); input()"


def python(script: str) -> list[str]:
    return [sys.executable, "-S", "-c", script]


async def fill(stream: ProcessStream) -> int:
    """Writes to a child that reads nothing until the pipe is full; returns the number of bytes written."""
    written = 0
    while stream.try_send(bytes(50_000)):
        written += 50_000
    return written


async def test_try_send_returns_false_when_the_pipe_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.transports.child.process.STEP_SECONDS", 0.01)
    with anyio.fail_after(30):
        async with start_process(python(SLEEP)) as stream:
            assert 0 < await fill(stream) < 1_000_000


async def test_a_waiting_send_raises_when_the_child_ends() -> None:
    with anyio.fail_after(30):
        async with start_process(python("import sys; sys.stdin.buffer.read(1)")) as stream:
            with pytest.raises(anyio.BrokenResourceError):
                await stream.send(bytes(1_000_000))
            assert not stream.try_send(b"x")


async def test_flooded_output_is_buffered_only_to_a_limit() -> None:
    pieces: list[int] = []
    with anyio.fail_after(30):
        async with start_process(python(FLOOD)) as stream:
            while sum(pieces) < 8_000_000:
                await anyio.lowlevel.checkpoint()
                pieces.append(len(await stream.receive()))
            with pytest.raises(anyio.EndOfStream):
                await stream.receive()
    assert max(pieces) <= MAX_WAITING_BYTES + READ_AT_ONCE


@pytest.mark.parametrize("use_uvloop", [False, True])
def test_a_child_runs_in_asyncio_and_uvloop(use_uvloop: bool) -> None:
    """Programs that serve over HTTP run in uvloop."""

    async def talk() -> bytes:
        with anyio.fail_after(30):
            async with start_process(python(LATE)) as stream:
                await stream.send(bytes(4_000_001))
                return await stream.receive()

    assert anyio.run(talk, backend_options={"use_uvloop": use_uvloop}) == b"4000000\n"


@pytest.mark.slow
@pytest.mark.parametrize("use_uvloop", [False, True])
def test_reading_a_flood_can_be_cancelled(use_uvloop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.transports.child.process.STEP_SECONDS", 0.01)
    reads = 0

    async def read_on(stream: ProcessStream) -> None:
        nonlocal reads
        while reads < 50:
            await stream.receive()
            reads += 1
            time.sleep(0.02)  # the time of processing that much: the pipe fills up again
        pytest.fail("it reads on")

    async def main() -> None:
        with anyio.fail_after(30):
            async with start_process(python(ENDLESS)) as stream, anyio.create_task_group() as tasks:
                tasks.start_soon(read_on, stream)
                while reads < 3:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()

    anyio.run(main, backend_options={"use_uvloop": use_uvloop})


@pytest.mark.parametrize("use_uvloop", [False, True])
def test_writing_to_an_ended_child_fails(use_uvloop: bool) -> None:
    async def write_on() -> None:
        child = await Child.start(python(""), env={}, cwd=None, captures_stderr=True)
        with anyio.fail_after(30):
            while child.write(b"x"):
                await anyio.lowlevel.checkpoint()
            with pytest.raises(anyio.BrokenResourceError):
                await child.send(b"x")
            await child.wait()
        child.close()
        await anyio.lowlevel.checkpoint()

    anyio.run(write_on, backend_options={"use_uvloop": use_uvloop})
