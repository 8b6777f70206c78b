"""Small precise scenes: a session, its streams and its calls, while the replicas that serve it come and go.

That each request of a session may go to another replica is what all the clients of `test_rolling_restart` live by.
"""

import signal
from contextlib import AsyncExitStack, suppress
from functools import partial

import aiohttp
import anyio
import pytest

from tests.checks.replicas.clients import Call, SessionClient, connected, stateless
from tests.checks.replicas.cluster import PATIENCE, Cluster, until
from tests.checks.replicas.failures import MayHaveRun, NotRun, PeerError, TooOld

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

Http = aiohttp.ClientSession
COUNTER = "counter://one"


async def opened(http: Http, three: Cluster, at: int) -> SessionClient:
    """A client whose session was opened at that replica, where its link leads for now."""
    client = SessionClient(http, three[at].url)
    await client.open()
    return client


def move(client: SessionClient, three: Cluster, to: int) -> None:
    """From now on the client's requests go to that replica."""
    client.link.base_url = three[to].url


async def pid(client: SessionClient) -> int:
    """The process that serves it."""
    return int(await client.tool("where"))


async def test_a_call_is_cancelled_through_another_replica(three: Cluster, http: Http) -> None:
    client = await opened(http, three, 0)
    call = client.new_call()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call_work, client, call, "cancelled")
        await until(lambda: len(call.logs) > 1, "no step of the work was logged")
        move(client, three, 1)
        await client.deliver(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call.id}}
        )
        notes = three.folder / "cancelled.notes"
        await until(lambda: "stopped" in notes.read_text(), "the work was not stopped")
        tasks.cancel_scope.cancel()


async def call_work(client: SessionClient, call: Call, key: str) -> None:
    with suppress(TooOld):  # nobody comes back to a call that was cancelled
        await client.tool("work", call, key=key, steps=100_000, pause_ms=50)


async def test_a_stream_at_another_replica_receives_an_update(three: Cluster, http: Http) -> None:
    """The stream is at C, the subscription was made at A, and somebody else writes at B."""
    client, other = await opened(http, three, 0), await opened(http, three, 1)
    await client.request("resources/subscribe", {"uri": COUNTER})
    move(client, three, 2)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.listen)
        await until(lambda: client.is_listening, "it does not listen")
        for turn in (1, 2, 3):
            number = int(await other.tool("bump", name="one"))
            await until(lambda turn=turn: client.notices[COUNTER] >= turn, f"bump {turn} was not heard of")
            assert await read(client, COUNTER) == number
        tasks.cancel_scope.cancel()
    assert client.notices == {COUNTER: 3}


async def read(client: SessionClient, uri: str) -> int:
    result = await client.request("resources/read", {"uri": uri})
    return int(result["contents"][0]["text"])


# Replicas that die


async def test_a_call_of_a_killed_replica_is_answered_with_an_error(three: Cluster, http: Http) -> None:
    client = await opened(http, three, 0)
    call = client.new_call()

    async def owed() -> None:
        with pytest.raises(PeerError) as caught:
            await client.tool("count", call, n=1_000, pause_ms=50)
        assert caught.value.code == -32603

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(owed)
        await until(lambda: len(call.logs) > 3, "nothing was counted")
        move(client, three, 2)
        three[0].kill()
    assert call.resumes
    assert call.logs == list(range(1, len(call.logs) + 1))


async def test_a_stream_is_resumed_at_another_replica(three: Cluster, http: Http) -> None:
    """The client's connection breaks, not the replica: the rest comes through another one, each number once."""
    client = await opened(http, three, 0)
    call = client.new_call()
    with anyio.move_on_after(PATIENCE) as cut:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(client.tool, "count", call, n=40, pause_ms=20))
            await until(lambda: len(call.logs) > 3, "nothing was counted")
            tasks.cancel_scope.cancel()
    assert not cut.cancelled_caught
    move(client, three, 1)
    result = await client.follow(call)
    assert result["content"][0]["text"] == "counted to 40"
    assert call.logs == list(range(1, 41))


async def test_a_subscription_of_a_killed_replica_is_taken_over(three: Cluster, http: Http) -> None:
    client, other = await opened(http, three, 0), await opened(http, three, 1)
    await client.request("resources/subscribe", {"uri": COUNTER})
    move(client, three, 2)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.listen)
        await until(lambda: client.is_listening, "it does not listen")
        three[0].kill()
        await other.tool("bump", name="one")
        await until(lambda: client.notices[COUNTER] > 0, "the client was not told to look again")
        before = client.notices[COUNTER]
        await other.tool("bump", name="one")
        await until(lambda: client.notices[COUNTER] > before, "the next change was not heard of")
        tasks.cancel_scope.cancel()


async def test_a_task_of_a_killed_replica_fails(three: Cluster, http: Http) -> None:
    client = await opened(http, three, 0)
    job = {"name": "job", "arguments": {"label": "moved", "pause_ms": 60_000}, "task": {"ttl": 60_000}}
    task: str = (await client.request("tools/call", job))["task"]["taskId"]
    move(client, three, 1)
    assert (await client.request("tasks/get", {"taskId": task}))["status"] == "working"
    three[0].kill()
    with anyio.fail_after(PATIENCE):
        while (now := await client.request("tasks/get", {"taskId": task}))["status"] == "working":
            await anyio.sleep(0.05)
    assert now["status"] == "failed"


async def test_a_replica_paused_beyond_its_lease_does_not_act(three: Cluster, http: Http) -> None:
    """Its call was answered by the others; when it goes on, it ends the work and says nothing more."""
    client = await opened(http, three, 0)
    call, notes = client.new_call(), three.folder / "still.notes"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call_work, client, call, "still")
        await until(lambda: len(call.logs) > 3, "no step of the work was logged")
        three[0].stop()
        tasks.cancel_scope.cancel()
    move(client, three, 1)
    with pytest.raises(PeerError) as caught:
        await client.follow(call)
    assert caught.value.code == -32603
    steps = len(notes.read_text().splitlines())
    three[0].go_on()
    await until(lambda: "stopped" in notes.read_text(), "the work goes on")
    # What it was about to do when it was stopped it may have done; more it has not.
    assert len(notes.read_text().splitlines()) <= steps + 2
    await three.replicas.wait_ready(three[0])
    events = [event async for event in client.link.resumed(call.last or "") if event.data]
    assert events == []
    for at in (0, 1, 2):
        move(client, three, at)
        assert await pid(client) == three[at].pid


async def test_a_listener_of_a_paused_replica_receives_all_elsewhere(three: Cluster, http: Http) -> None:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connected(http, three[0].url))
        other = await opened(http, three, 1)
        await client.request("resources/subscribe", {"uri": COUNTER})
        await until(lambda: client.is_listening, "it does not listen")
        three[0].stop()
        move(client, three, 2)
        number = int(await other.tool("bump", name="one"))
        three[0].go_on()
        await until(lambda: client.notices[COUNTER] > 0, "it was not told")
        assert await read(client, COUNTER) == number


async def test_changes_acknowledged_by_a_paused_replica_are_stored(three: Cluster, http: Http) -> None:
    """It is stopped in the middle of requests. What it says that it has done is done, what it refused is not."""
    clients = [await opened(http, three, 0) for _ in range(20)]
    witness = await opened(http, three, 0)
    owed, reading = witness.new_call(), anyio.CancelScope()
    stopped = anyio.Event()
    levels: dict[SessionClient, set[str]] = {client: {"info"} for client in clients}

    async def change(client: SessionClient) -> None:
        while not stopped.is_set():
            for level in ("error", "info"):
                await change_once(client, level, levels[client])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(counted_in_vain, witness, owed, reading)
        await until(lambda: bool(owed.logs), "nothing was counted")
        for client in clients:
            tasks.start_soon(change, client)
        await until(lambda: len(owed.logs) > 10, "nothing was counted")
        three[0].stop()
        stopped.set()
        await lose_call(witness, owed, reading, three)
        three[0].go_on()
    for client in clients:
        move(client, three, 1)
        call = client.new_call()
        await client.tool("count", call, n=2)
        assert ("info" if call.logs else "error") in levels[client]


async def change_once(client: SessionClient, level: str, may_be: set[str]) -> None:
    """Has the level changed; `may_be` has the levels that it may be at then."""
    try:
        await client.request("logging/setLevel", {"level": level})
    except NotRun:
        return
    except MayHaveRun:
        may_be.add(level)
    else:
        may_be.clear()
        may_be.add(level)


async def counted_in_vain(client: SessionClient, call: Call, reading: anyio.CancelScope) -> None:
    with reading, suppress(PeerError, NotRun, MayHaveRun):
        await client.tool("count", call, n=1_000, pause_ms=20)


async def lose_call(client: SessionClient, call: Call, reading: anyio.CancelScope, three: Cluster) -> None:
    """Returns when the lease of the replica that serves the call, and stands still, is over: another one says that
    the call is lost. The connection is given up first, for what waits in it would come a second time."""
    reading.cancel()
    move(client, three, 1)
    with pytest.raises(PeerError):
        await client.follow(call)


@pytest.mark.parametrize("method", ["write", "set"])
async def test_a_late_answer_of_redis_is_not_acted_on(three: Cluster, http: Http, method: str) -> None:
    """Redis has answered what a replica asked for a request, but that stands still until its lease is over."""
    witness, client = await opened(http, three, 0), await opened(http, three, 0)
    owed, reading, name = witness.new_call(), anyio.CancelScope(), f"late-{method}"
    await client.tool("echo", text="here")
    params = {"name": "bump", "arguments": {"name": name}} if method == "write" else {"level": "error"}
    outcomes: list[Exception | None] = []

    async def ask() -> None:
        try:
            await client.request("tools/call" if method == "write" else "logging/setLevel", params)
        except (NotRun, MayHaveRun) as failed:
            outcomes.append(failed)
        else:
            outcomes.append(None)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(counted_in_vain, witness, owed, reading)
        await until(lambda: bool(owed.logs), "nothing was counted")
        three.redis.send(signal.SIGSTOP)
        tasks.start_soon(ask)
        for text in ("one", "two", "three"):  # by then it has asked Redis
            assert await stateless(http, three[0].url, text) == text
        three[0].stop()
        three.redis.send(signal.SIGCONT)
        await lose_call(witness, owed, reading, three)
        three[0].go_on()
    assert isinstance(outcomes[0], NotRun)
    move(client, three, 1)
    assert await read(client, f"counter://{name}") == 0
    call = client.new_call()
    await client.tool("count", call, n=2)
    assert call.logs == [1, 2]


async def test_a_write_completed_by_a_paused_replica_sends_an_update(three: Cluster, http: Http) -> None:
    """It was in the middle of a write, which nobody could stop. Its client may not know; who watches is told."""
    witness, client = await opened(http, three, 0), await opened(http, three, 0)
    owed, reading, notes = witness.new_call(), anyio.CancelScope(), three.folder / "slow.notes"
    async with connected(http, three[1].url) as watching, anyio.create_task_group() as tasks:
        await watching.request("resources/subscribe", {"uri": "counter://slow"})
        await until(lambda: watching.is_listening, "it does not listen")
        tasks.start_soon(counted_in_vain, witness, owed, reading)
        await until(lambda: bool(owed.logs), "nothing was counted")
        tasks.start_soon(bumped_in_vain, client, "slow")
        await until(notes.exists, "it has not begun")
        three[0].stop()
        await lose_call(witness, owed, reading, three)
        three[0].go_on()
        await until(lambda: watching.notices["counter://slow"] > 0, "a write was not heard of", 10)
        assert await read(watching, "counter://slow") == 1


async def bumped_in_vain(client: SessionClient, name: str) -> None:
    with suppress(PeerError, NotRun, MayHaveRun):
        await client.tool("bump_slowly", name=name)
