"""Connecting to one of several addresses."""

import socket
from typing import Any

import anyio
import httpcore
import pytest

from servers.fetch.errors import FetchError
from servers.fetch.network.address_policy import Policy, Rules
from servers.fetch.network.connecting import MOST_TRIED, CheckedBackend, SystemResolver
from tests.servers.fetch.reaching import PATIENCE, Answers, listening, reaching

DEAD, SILENT, LIVE = "192.0.78.1", "192.0.78.2", "192.0.78.3"


class Network(httpcore.AsyncNetworkBackend):
    """Where one address refuses connections, one never answers, and the others take them."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self.open: list[str] = []

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        self.tried.append(host)
        if host == DEAD:
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
async def test_the_first_address_that_answers_is_taken(addresses: list[str]) -> None:
    network = Network()
    await backend(network, *addresses).connect_tcp("site.test", 80)
    assert network.open == [LIVE]


@pytest.mark.slow
async def test_an_address_that_does_not_answer_holds_up_no_other() -> None:
    network = Network()
    with anyio.fail_after(PATIENCE):
        await backend(network, SILENT, LIVE).connect_tcp("site.test", 80, timeout=PATIENCE)
    assert (network.tried, network.open) == ([SILENT, LIVE], [LIVE])


async def test_a_site_of_which_nothing_answers_can_t_be_reached() -> None:
    with pytest.raises(FetchError, match=r"^site\.test takes no connections at port 80$") as caught:
        await backend(Network(), DEAD).connect_tcp("site.test", 80)
    assert caught.value.code == "connect"


async def test_only_so_many_addresses_are_tried() -> None:
    network = Network()
    many = [f"192.0.78.{number}" for number in range(100, 200)]
    with pytest.raises(FetchError):
        await CheckedBackend(Policy(Rules()), Answers(site_test=many), Refusing(network)).connect_tcp("site.test", 80)
    assert network.tried == many[:MOST_TRIED]


class Refusing(httpcore.AsyncNetworkBackend):
    def __init__(self, network: Network) -> None:
        self._network = network

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        self._network.tried.append(host)
        raise httpcore.ConnectError


async def test_connecting_has_its_time() -> None:
    with pytest.raises(FetchError, match=r"^site\.test was not reached within 0\.01 s$") as caught:
        await backend(Network(), SILENT).connect_tcp("site.test", 80, timeout=0.01)
    assert caught.value.code == "timeout"


async def test_h17_a_connection_is_closed_when_tls_is_cancelled() -> None:
    network = Network()
    stream = await backend(network, LIVE).connect_tcp("site.test", 80)
    with anyio.move_on_after(0):
        await stream.start_tls(None)
    assert network.open == []


async def test_h17_a_connection_that_comes_too_late_is_closed() -> None:
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


async def test_what_is_no_host_is_not_resolved() -> None:
    answers = Answers()
    with pytest.raises(FetchError) as caught:
        await CheckedBackend(Policy(Rules()), answers, Network()).connect_tcp("a..b", 80)
    assert (caught.value.code, answers.asked) == ("bad_url", [])


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (socket.gaierror(socket.EAI_NONAME, ""), "no address is known for site.test. Check the spelling"),
        (socket.gaierror(socket.EAI_AGAIN, ""), "the resolver failed for site.test. Try again later"),
        (UnicodeError(), "no address is known for site.test"),
    ],
)
async def test_a_resolver_may_fail(failure: Exception, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(FetchError) as caught:
        await SystemResolver().resolve("site.test")
    assert (caught.value.code, str(caught.value)) == ("dns", told)


async def test_resolving_has_its_time() -> None:
    with pytest.raises(FetchError) as caught:
        await SystemResolver(seconds=0).resolve("localhost")
    told = "the address of localhost was not found out within 0 s. Try again later"
    assert (caught.value.code, str(caught.value)) == ("dns", told)


async def test_a_resolver_without_an_answer_is_no_way_in() -> None:
    async with listening() as site, reaching(Answers(site_test=[[]]), allow_port=[site.port]) as web:
        assert (await web.refused(f"http://site.test:{site.port}/")).code == "dns"
