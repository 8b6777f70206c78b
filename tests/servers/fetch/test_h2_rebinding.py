"""H2: names that lead to a public address when they are checked, and home when they are connected to."""

import json
import subprocess
import sys
from pathlib import Path

import httpcore
import pytest

from servers.fetch.errors import FetchError
from servers.fetch.network.address_policy import Policy, Rules
from servers.fetch.network.client import ClientOptions
from servers.fetch.network.connecting import CheckedBackend
from tests.servers.fetch.reaching import Answers, Recorder, listening, reaching

PUBLIC, PRIVATE = "93.184.215.14", "127.0.0.1"


def fetching(resolver: Answers, recorder: Recorder) -> httpcore.AsyncConnectionPool:
    return httpcore.AsyncConnectionPool(network_backend=CheckedBackend(Policy(Rules()), resolver, recorder))


async def test_h2_a_name_is_resolved_once_and_the_checked_address_is_connected_to() -> None:
    resolver, recorder = Answers(rebinding_test=[[PUBLIC], [PRIVATE]]), Recorder()
    async with fetching(resolver, recorder) as pool:
        assert (await pool.request("GET", "http://rebinding.test/")).content == b"hello"
    assert (resolver.asked, recorder.reached) == (["rebinding.test"], [(PUBLIC, 80)])


async def test_h2_each_connection_is_checked_anew() -> None:
    resolver, recorder = Answers(rebinding_test=[[PUBLIC], [PRIVATE]]), Recorder()
    async with fetching(resolver, recorder) as pool:
        await pool.request("GET", "http://rebinding.test/")
        with pytest.raises(FetchError, match="not on the public internet"):
            await pool.request("GET", "http://rebinding.test/")
    assert recorder.reached == [(PUBLIC, 80)]


async def test_h2_one_private_address_among_public_ones_refuses_them_all() -> None:
    resolver, recorder = Answers(mixed_test=[PUBLIC, "2606:4700::1111", PRIVATE]), Recorder()
    async with fetching(resolver, recorder) as pool:
        with pytest.raises(FetchError):
            await pool.request("GET", "http://mixed.test/")
    assert recorder.reached == []


async def test_h2_behind_a_proxy_each_request_is_checked_before_the_proxy_hears_of_it() -> None:
    resolver = Answers(rebinding_test=[[PUBLIC], [PRIVATE]])
    async with listening() as proxy:
        options = ClientOptions(proxy_url=f"http://127.0.0.1:{proxy.port}")
        async with reaching(resolver, options) as web:
            assert await web.get("http://rebinding.test/") == "hello"
            assert (await web.refused("http://rebinding.test/")).code == "blocked_address"
        assert await proxy.count() == 1


NAMESPACE = """
import struct, sys, json
import anyio
from servers.fetch.network.connecting import SystemResolver
from tests.servers.fetch.reaching import listening, reaching

ANSWERS = ["93.184.215.14", "127.0.0.1"]
asked = []

def reply(query):
    end = query.index(0, 12) + 1
    kind = struct.unpack("!H", query[end:end + 2])[0]
    record = b""
    if b"unknown" in query:
        return query[:2] + struct.pack("!HHHHH", 0x8183, 1, 0, 0, 0) + query[12:end + 4]
    if kind == 1:
        asked.append("A")
        address = bytes(map(int, ANSWERS[min(len(asked), len(ANSWERS)) - 1].split(".")))
        record = b"\\xc0\\x0c" + struct.pack("!HHIH", 1, 1, 0, 4) + address
    counts = struct.pack("!HHHHH", 0x8180, 1, 1 if record else 0, 0, 0)
    return query[:2] + counts + query[12:end + 4] + record

async def dns(udp):
    async for query, address in udp:
        await udp.sendto(reply(query), *address)

async def main():
    async with (
        await anyio.create_udp_socket(local_host="127.0.0.1", local_port=53) as udp,
        listening("93.184.215.14", 80) as public,
        listening("127.0.0.1", 80) as private,
        anyio.create_task_group() as tasks,
        reaching(SystemResolver()) as web,
    ):
        tasks.start_soon(dns, udp)
        text = await web.get("http://rebinding.test/")
        error = await web.refused("http://rebinding.test/")
        unknown = await web.refused("http://unknown.test/")
        counts = [await public.count("93.184.215.14"), await private.count()]
        tasks.cancel_scope.cancel()
    print(json.dumps({"text": text, "code": error.code, "counts": counts, "asked": len(asked)}))
    print(unknown.code, unknown)

anyio.run(main)
"""
SET_UP = """
set -e
ip link set lo up
ip address add 93.184.215.14/32 dev lo
mount --bind "$1" /etc/resolv.conf
exec "$2" "$3"
"""


def isolated(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a network and with mounts of its own."""
    unshare = ["unshare", "--net", "--mount", "--propagation", "private", *command]
    return subprocess.run(unshare, capture_output=True, text=True, timeout=60, check=False)


def can_isolate() -> bool:
    try:
        return isolated("sh", "-c", "ip link set lo up && mount --bind /dev/null /etc/resolv.conf").returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_h2_a_real_name_server_that_changes_its_answer(tmp_path: Path) -> None:
    if not can_isolate():
        pytest.skip("a name server of one's own needs root, and network and mount namespaces")
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:5 attempts:1\n")
    (tmp_path / "rebinding.py").write_text(f"import sys; sys.path.insert(0, {str(Path.cwd())!r})\n{NAMESPACE}")
    arguments = ["rebinding", str(tmp_path / "resolv.conf"), sys.executable, str(tmp_path / "rebinding.py")]
    done = isolated("sh", "-c", SET_UP, *arguments)
    assert done.returncode == 0, done.stderr
    # Each connection asked once; the second was never made.
    outcome, unknown = done.stdout.splitlines()
    assert json.loads(outcome) == {"text": "hello", "code": "blocked_address", "counts": [1, 0], "asked": 2}
    assert unknown == "dns no address is known for unknown.test. Check the spelling"
