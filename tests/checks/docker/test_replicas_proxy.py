"""The shipped nginx.conf in front of three replicas: any replica answers, and a lost one loses no request."""

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.checks.docker.images import TOKEN, service
from tests.checks.docker.names import naming
from tests.checks.docker.proxy import proxied
from tests.checks.docker.test_proxy import AUTHORIZED, events, stream
from tests.ports import free_port
from tests.raw import Json, Raw, call, listening, post, request, stateless

ADDRESSES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
"""Of the replicas, which all have the same port, as in containers of their own."""
REQUESTS = 60
RESOLVER = "resolver 127.0.0.11 valid=2s ipv6=off;"
LISTED = stateless(call(1, "list_allowed_directories"))


@contextmanager
def replicas(folder: Path, given: Mapping[str, str] | None = None) -> Iterator[tuple[int, dict[str, Raw]]]:
    """The port of three servers, and each of them by its address. They serve a folder `shared`, and each one more,
    which is named after its address. `given` are more variables."""
    secret = folder / "token"
    secret.write_text(TOKEN)
    (folder / "shared").mkdir()
    port = str(free_port())
    with ExitStack() as stack:
        found = {}
        for address in ADDRESSES:
            (folder / address).mkdir()
            arguments, environment = service("filesystem")
            environment |= {"MCP_TOKEN_FILE": str(secret), "MCP_HOST": address, "MCP_PORT": port, **(given or {})}
            words = [word.replace("/data", str(folder / "shared")) for word in arguments]
            command = [sys.executable, "-m", "servers.filesystem", *words, str(folder / address)]
            found[address] = stack.enter_context(Raw(command, env={**os.environ, **environment}))
        for server in found.values():
            listening(server)
        yield int(port), found


@contextmanager
def balanced(nginx: str, port: int) -> Iterator[str]:
    """The URL of what nginx finds by one name."""
    with naming(ADDRESSES) as names:
        changes = {
            RESOLVER: RESOLVER.replace("127.0.0.11", f"127.0.0.1:{names}"),
            f"127.0.0.1:{port}": f"filesystem:{port}",
        }
        with proxied(nginx, {"filesystem": str(port)}, changes) as site:
            yield f"http://localhost:{site}/filesystem/mcp"


def who(url: str, message: Json = LISTED, **headers: str) -> str:
    """The address of the replica that answers the call of `list_allowed_directories`."""
    answer = post(url, message, **AUTHORIZED, **headers)
    assert answer.status_code == 200, answer.text
    (found,) = (address for address in ADDRESSES if address in answer.text)
    return found


def test_any_replica_answers_and_a_stopped_one_loses_no_request(nginx: str, tmp_path: Path) -> None:
    with replicas(tmp_path) as (port, servers), balanced(nginx, port) as url:
        # With each request as likely to go to any of them, fewer than five of sixty happen once in a million runs.
        shares = Counter(who(url) for _ in range(REQUESTS))
        assert set(shares) == set(ADDRESSES)
        assert min(shares.values()) >= 5
        gone, *staying = ADDRESSES
        servers[gone].process.kill()
        servers[gone].wait()
        assert {who(url) for _ in range(REQUESTS)} == set(staying)


def test_streams_of_several_replicas_are_not_buffered(nginx: str, tmp_path: Path) -> None:
    with replicas(tmp_path) as (port, _), balanced(nginx, port) as url, ExitStack() as stack:
        watched = tmp_path / "shared" / "watched.txt"
        watched.write_text("first")
        wanted = {"notifications": {"resourceSubscriptions": [watched.as_uri()]}}
        message = stateless(request("L", "subscriptions/listen", wanted))
        arriving = [events(stack.enter_context(stream(url, message))) for _ in range(9)]
        assert {next(one)["method"] for one in arriving} == {"notifications/subscriptions/acknowledged"}
        watched.write_text("second")
        assert {next(one)["method"] for one in arriving} == {"notifications/resources/updated"}
