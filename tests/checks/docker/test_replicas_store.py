"""Three replicas of compose.replicas.yaml with its Redis and the shipped proxy: any replica serves a session."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.checks.docker.images import REPLICAS
from tests.checks.docker.test_proxy import AUTHORIZED
from tests.checks.docker.test_replicas_proxy import ADDRESSES, REQUESTS, balanced, replicas, who
from tests.checks.docker.test_store_container import started
from tests.ports import free_port
from tests.raw import INITIALIZE, INITIALIZED, Raw, call, post

GIVEN: dict[str, str] = REPLICAS["services"]["filesystem"]["environment"]


@contextmanager
def sharing(folder: Path) -> Iterator[tuple[int, dict[str, Raw]]]:
    """The port of the replicas, and each of them by its address."""
    port = free_port()
    given: dict[str, Any] = {**GIVEN, "MCP_STATE_KEY": "the same at all", "MCP_STORE_LEASE": "1"}
    given["MCP_STORE"] = given["MCP_STORE"].replace("redis:6379", f"127.0.0.1:{port}")
    given["MCP_STORE_PASSWORD_FILE"] = str(folder / "store_password")
    with started(folder, port), replicas(folder, given) as found:
        yield found


def test_a_session_continues_at_any_replica(nginx: str, redis_server: str, tmp_path: Path) -> None:
    with sharing(tmp_path) as (port, servers), balanced(nginx, port) as url:
        opened = post(url, INITIALIZE, **AUTHORIZED)
        session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        assert post(url, {**INITIALIZED, "params": {}}, **AUTHORIZED, **session).status_code == 202
        calls = (call(number, "list_allowed_directories") for number in range(2 * REQUESTS))
        assert {who(url, next(calls), **session) for _ in range(REQUESTS)} == set(ADDRESSES)
        gone, *staying = ADDRESSES
        servers[gone].process.kill()
        servers[gone].wait()
        assert {who(url, next(calls), **session) for _ in range(REQUESTS)} == set(staying)
