"""H18: this server's own endpoint, which whoever asks it to fetch may not be able to reach."""

import socket

import anyio
import pytest

from servers.fetch.errors import FetchError
from servers.fetch.network.address_policy import Policy, Rules
from servers.fetch.network.client import ClientOptions, open_client
from servers.fetch.network.urls import parse_url
from shared import Implementation, Server
from shared.transports.http.server import HttpOptions, run_http
from tests.servers.fetch.reaching import PATIENCE, Answers

ANYWHERE = Rules(allow_private=["0.0.0.0/0:*", "[::/0]:*", "localhost:*", "own.test:*"])
NAMES = Answers(localhost=["127.0.0.1"], own_test=["127.0.0.1"])
HOSTS = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "0", "localhost", "own.test", "[::1]", "[::ffff:7f00:1]", "[::]"]


def own_address() -> str:
    """The address of an interface of this machine; loopback where there is no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
async def test_h18_a_server_does_not_fetch_from_itself_by_any_name(bound: str) -> None:
    app, ready, stop = Server(Implementation(name="own", version="1")), anyio.Event(), anyio.Event()
    options = HttpOptions(bound, 0, allowed_hosts=("*",))
    endpoints = list[tuple[str, int]]()
    policy = Policy(ANYWHERE, lambda: endpoints)
    async with (
        app.open() as running,
        anyio.create_task_group() as tasks,
        open_client(ClientOptions(), policy, NAMES) as web,
    ):
        endpoints = running.endpoints
        tasks.start_soon(lambda: run_http(running, options, started=lambda *_: ready.set(), stop=stop))
        with anyio.fail_after(PATIENCE):
            await ready.wait()
            port = endpoints[0][1]
            for host in [*HOSTS, own_address()]:
                with pytest.raises(FetchError, match="is this server itself"):
                    await web.get(parse_url(f"http://{host}:{port}/healthz"))
        stop.set()


async def test_h18_another_port_of_this_machine_is_no_endpoint_of_ours() -> None:
    Policy(ANYWHERE, lambda: [("127.0.0.1", 8000)]).check_address("127.0.0.1", "127.0.0.1", 8001)


@pytest.mark.parametrize("bound", ["192.0.2.7", "2001:db8::7"])
async def test_h18_the_address_it_is_bound_to_is_its_own(bound: str) -> None:
    policy = Policy(ANYWHERE, lambda: [(bound, 8000)])
    with pytest.raises(FetchError, match="is this server itself"):
        policy.check_address("own.test", bound, 8000)
    policy.check_address("other.test", "192.0.2.8", 8000)
