"""Connecting to the checked addresses of a host."""

import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import httpcore
import pytest

from servers.fetch.errors import FetchError
from servers.fetch.network.address_policy import Policy, Rules
from servers.fetch.network.client import ClientOptions
from servers.fetch.network.connecting import MAX_ADDRESSES, CheckedBackend, SystemResolver
from tests.servers.fetch.reaching import PATIENCE, Answers, Recorder, listening, reaching

DEAD, SILENT, LIVE = "192.0.78.1", "192.0.78.2", "192.0.78.3"


class Network(httpcore.AsyncNetworkBackend):
    """A network where some addresses refuse connections, one never answers, and the others accept."""

    def __init__(self, dead: Sequence[str] = (DEAD,)) -> None:
        self.dead = dead
        self.tried: list[str] = []
        self.open: list[str] = []

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        self.tried.append(host)
        if host in self.dead:
            raise httpcore.ConnectError
        if host == SILENT:
            await anyio.sleep_forever()
        self.open.append(host)
        return Stream(self, host)


class Stream(httpcore.AsyncMockStream):
    def __init__(self, network: Network, host: str) -> None:
        super().__init__([])
        self._network = network
        self._host = host

    async def aclose(self) -> None:
        self._network.open.remove(self._host)

    async def start_tls(self, *_: Any) -> httpcore.AsyncNetworkStream:
        return await anyio.sleep_forever()


def backend(network: Network, *addresses: str) -> CheckedBackend:
    return CheckedBackend(Policy(Rules()), Answers(site_test=addresses), network)


@pytest.mark.parametrize("addresses", [[LIVE], [DEAD, LIVE], [LIVE, DEAD], [DEAD, DEAD, LIVE]])
async def test_the_first_address_that_accepts_is_used(addresses: list[str]) -> None:
    network = Network()
    await backend(network, *addresses).connect_tcp("site.test", 80)
    assert network.open == [LIVE]


@pytest.mark.slow
async def test_a_silent_address_does_not_delay_the_next() -> None:
    network = Network()
    with anyio.fail_after(PATIENCE):
        await backend(network, SILENT, LIVE).connect_tcp("site.test", 80, timeout=PATIENCE)
    assert (network.tried, network.open) == ([SILENT, LIVE], [LIVE])


async def test_a_site_without_an_accepting_address_is_a_connect_error() -> None:
    with pytest.raises(FetchError, match=r"^site\.test accepts no connections on port 80\. Check the host") as caught:
        await backend(Network(), DEAD).connect_tcp("site.test", 80)
    assert caught.value.code == "connect"


async def test_the_number_of_tried_addresses_is_limited() -> None:
    many = [f"192.0.78.{number}" for number in range(100, 200)]
    network = Network(many)
    with pytest.raises(FetchError):
        await backend(network, *many).connect_tcp("site.test", 80)
    assert network.tried == many[:MAX_ADDRESSES]


async def test_connecting_times_out() -> None:
    with pytest.raises(FetchError, match=r"^site\.test was not reached within 0\.01 s\. Try again") as caught:
        await backend(Network(), SILENT).connect_tcp("site.test", 80, timeout=0.01)
    assert caught.value.code == "timeout"


async def test_a_cancelled_tls_handshake_closes_the_connection() -> None:
    network = Network()
    stream = await backend(network, LIVE).connect_tcp("site.test", 80)
    with anyio.move_on_after(0):
        await stream.start_tls(None)
    assert network.open == []


async def test_a_connection_made_after_cancellation_is_closed() -> None:
    network = Network()

    class Late(httpcore.AsyncNetworkBackend):
        async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
            stream = await network.connect_tcp(host, port)
            scope.cancel()
            return stream

    with anyio.CancelScope() as scope:
        await CheckedBackend(Policy(Rules()), Answers(site_test=[LIVE]), Late()).connect_tcp("site.test", 80)
    assert scope.cancelled_caught
    assert (network.tried, network.open) == ([LIVE], [])


async def test_an_invalid_host_is_not_resolved() -> None:
    answers = Answers()
    with pytest.raises(FetchError) as caught:
        await CheckedBackend(Policy(Rules()), answers, Network()).connect_tcp("a..b", 80)
    assert (caught.value.code, answers.resolved) == ("bad_url", [])


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (socket.gaierror(socket.EAI_NONAME, ""), "could not resolve site.test. Check the spelling"),
        (socket.gaierror(socket.EAI_AGAIN, ""), "the resolver failed for site.test. Try again later"),
        (UnicodeError(), "could not resolve site.test"),
    ],
)
async def test_a_failing_resolver_is_a_dns_error(
    failure: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(FetchError) as caught:
        await SystemResolver().resolve("site.test")
    assert (caught.value.code, str(caught.value)) == ("dns", message)


async def test_resolving_times_out() -> None:
    with pytest.raises(FetchError) as caught:
        await SystemResolver(seconds=0).resolve("localhost")
    message = "the address of localhost was not resolved within 0 s. Try again later"
    assert (caught.value.code, str(caught.value)) == ("dns", message)


async def test_an_empty_dns_answer_is_a_dns_error() -> None:
    async with listening() as site, reaching(Answers(site_test=[[]]), allow_port=[site.port]) as web:
        assert (await web.refused(f"http://site.test:{site.port}/")).code == "dns"


# Every spelling of a loopback address

SPELLINGS = [
    "127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "127.255.255.254", "2130706433", "0x7f000001", "0X7F.0.0.1",
    "0x7f.1", "017700000001", "0177.0.0.01", "0177.0x0.0.1", "000000177.0.0.1", "0", "0x", "0.0.0.0", "0.1.2.3",
    "１２７.０.０.１", "127。0。0。1", "127．0．0．1", "①②⑦.0.0.①", "%31%32%37.0.0.1",
    "%EF%BC%91%EF%BC%92%EF%BC%97.1",
    "127\u200b.0.0.1", "127.0.0.1\u00ad", "[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::]", "[::127.0.0.1]", "[::7f00:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::FFFF:7F00:0001]",
    "[0:0:0:0:0:ffff:127.0.0.1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]",
    "[64:ff9b:1::127.0.0.1]", "[64:ff9b:1:7f00:0:100::]", "[2002:7f00:1::]", "[2002:7f00:0001::1]",
    "[2001:0:7f00:1::1]", "[2001:0:5db8:d822:0:0:80ff:fffe]", "[2606:4700::5efe:127.0.0.1]",
    "[2606:4700::200:5efe:127.0.0.1]", "[fe80::1]", "localhost", "LOCALHOST", "localhost.", "ｌｏｃａｌｈｏｓｔ",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "lo\u00adcal\u200bhost", "%6c%6f%63%61%6c%68%6f%73%74", "localtest.me", "sub.localtest.me",
    "mapped.localtest.me", "zone.localtest.me", "mixed.localtest.me",
]  # fmt: skip
NAMES = Answers(
    localhost=["127.0.0.1", "::1"],
    localtest_me=["127.0.0.1"],
    sub_localtest_me=["::1"],
    mapped_localtest_me=["::ffff:127.0.0.1"],
    zone_localtest_me=["fe80::1%lo"],
    mixed_localtest_me=["93.184.215.14", "127.0.0.1"],
)
NOT_URLS = [
    "[::1%lo]", "[::1%25lo]", "[fe80::1%251]", "[::1", "::1", "[127.0.0.1]", "[::ffff:127.1]", "[v1.7f]",
    "127.0.0.1\\", "127.0.0.1\\@example.com", "example.com\\.127.0.0.1", "example.com@127.0.0.1",
    "example.com:80@127.0.0.1", "example.com%40127.0.0.1", "127.0.0.1%00.example.com", "127.0.0.1%2f.example.com",
    "127.0.0.1%09", "127.0.0.256", "127.0.0.0.1", "256.1", "4294967296", "example.1", "example.0x7f", "1.2.3.08",
    "", ".", "..", "127..1",
]  # fmt: skip


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


async def test_every_spelling_of_this_machine_is_blocked() -> None:
    async with listening(None) as site, reaching(NAMES, allow_port=[site.port]) as web:
        codes = {host: (await web.refused(f"http://{host}:{site.port}/")).code for host in SPELLINGS}
        for address in ("127.0.0.1", "::1") if has_ipv6() else ("127.0.0.1",):
            assert await site.count(address) == 0
    assert codes == dict.fromkeys(SPELLINGS, "blocked_address")


async def test_ambiguous_hosts_are_refused_as_bad_urls() -> None:
    async with reaching(NAMES) as web:
        codes = {host: (await web.refused(f"http://{host}/")).code for host in NOT_URLS}
    assert codes == dict.fromkeys(NOT_URLS, "bad_url")


async def test_the_backend_blocks_hosts_that_were_not_parsed_before() -> None:
    recorder = Recorder()
    backend = CheckedBackend(Policy(Rules()), NAMES, recorder)
    for host in [*SPELLINGS, *NOT_URLS]:
        for written in (host, host.strip("[]")):
            with pytest.raises(FetchError):
                await backend.connect_tcp(written, 80)
    assert recorder.reached == []


async def test_localhost_is_blocked_unless_allowed_as_private() -> None:
    async with listening() as site:
        async with reaching(SystemResolver(), allow_port=[site.port]) as web:
            assert (await web.refused(f"http://localhost:{site.port}/")).code == "blocked_address"
            assert await site.count() == 0
        async with reaching(SystemResolver(), allow_private=["localhost:*"]) as web:
            assert await web.get(f"http://localhost:{site.port}/") == "hello"


async def test_a_refusal_hides_the_address_of_a_name() -> None:
    async with reaching(Answers(intranet_example=["10.1.2.3"])) as web:
        error = await web.refused("http://intranet.example/")
    assert str(error).startswith("intranet.example is not on the public internet. ")
    assert "10.1.2.3" not in str(error)


# DNS rebinding: a name that is public when checked, and private when connected to

PUBLIC, PRIVATE = "93.184.215.14", "127.0.0.1"


def fetching(resolver: Answers, recorder: Recorder) -> httpcore.AsyncConnectionPool:
    return httpcore.AsyncConnectionPool(network_backend=CheckedBackend(Policy(Rules()), resolver, recorder))


async def test_a_name_is_resolved_once_and_its_checked_address_is_used() -> None:
    resolver, recorder = Answers(rebinding_test=[[PUBLIC], [PRIVATE]]), Recorder()
    async with fetching(resolver, recorder) as pool:
        assert (await pool.request("GET", "http://rebinding.test/")).content == b"hello"
    assert (resolver.resolved, recorder.reached) == (["rebinding.test"], [(PUBLIC, 80)])


async def test_each_connection_checks_its_address() -> None:
    resolver, recorder = Answers(rebinding_test=[[PUBLIC], [PRIVATE]]), Recorder()
    async with fetching(resolver, recorder) as pool:
        await pool.request("GET", "http://rebinding.test/")
        with pytest.raises(FetchError, match="not on the public internet"):
            await pool.request("GET", "http://rebinding.test/")
    assert recorder.reached == [(PUBLIC, 80)]


async def test_a_private_address_among_public_ones_blocks_the_name() -> None:
    resolver, recorder = Answers(mixed_test=[PUBLIC, "2606:4700::1111", PRIVATE]), Recorder()
    async with fetching(resolver, recorder) as pool:
        with pytest.raises(FetchError):
            await pool.request("GET", "http://mixed.test/")
    assert recorder.reached == []


async def test_each_request_is_checked_before_the_proxy_gets_it() -> None:
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


def run_isolated(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in its own network and mount namespaces."""
    unshare = ["unshare", "--net", "--mount", "--propagation", "private", *command]
    return subprocess.run(unshare, capture_output=True, text=True, timeout=60, check=False)


def can_isolate() -> bool:
    try:
        return (
            run_isolated("sh", "-c", "ip link set lo up && mount --bind /dev/null /etc/resolv.conf").returncode == 0
        )
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_a_real_name_server_cannot_rebind_a_name(tmp_path: Path) -> None:
    if not can_isolate():
        pytest.skip("a name server of one's own needs root, and network and mount namespaces")
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:5 attempts:1\n")
    (tmp_path / "rebinding.py").write_text(f"import sys; sys.path.insert(0, {str(Path.cwd())!r})\n{NAMESPACE}")
    arguments = ["rebinding", str(tmp_path / "resolv.conf"), sys.executable, str(tmp_path / "rebinding.py")]
    done = run_isolated("sh", "-c", SET_UP, *arguments)
    assert done.returncode == 0, done.stderr
    # Each connection resolved the name once; the second was not made.
    outcome, unknown = done.stdout.splitlines()
    assert json.loads(outcome) == {"text": "hello", "code": "blocked_address", "counts": [1, 0], "asked": 2}
    assert unknown == "dns could not resolve unknown.test. Check the spelling"
