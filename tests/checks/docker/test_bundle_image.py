"""The image of several servers: one path for each, a read-only root, and an orderly end."""

import re
import time

import httpx
import pytest

from shared.version import __version__
from tests.checks.docker.containers import (
    Measured,
    added,
    check_confined,
    check_size,
    container_of,
    healthy,
    memory,
    started_in,
    stop,
)
from tests.checks.docker.images import TOKEN, build, needs_tool
from tests.checks.docker.probing import until_ready
from tests.raw import Raw, listening, post, request, stateless
from tests.wire import PATIENCE

FOLDER = {"MCP_FILESYSTEM_ROOTS": "/data"}
AUTHORIZED = {"authorization": f"Bearer {TOKEN}"}

pytestmark = [pytest.mark.timeout(1_500), needs_tool]


def test_all_servers_in_one_container(measured: Measured) -> None:
    image = build("bundle")
    assert image.config["Labels"]["org.opencontainers.image.version"] == __version__
    environment = {"MCP_TOKEN_FILE": "/run/secrets/mcp_token", "MCP_PORT": "0", **FOLDER}
    with started_in(image, [], environment) as server:
        url = listening(server).replace("0.0.0.0", "localhost").rstrip("/")
        port = url.rsplit(":", 1)[1]
        container = container_of(image, server)
        check_confined(container)
        until_ready(f"{url}/readyz")
        for name in ("filesystem", "sqlite", "fetch", "prompts"):
            answer = post(f"{url}/{name}/mcp", stateless(request(1, "server/discover")), **AUTHORIZED)
            assert (answer.status_code, "result" in answer.json()) == (200, True), answer.text
        assert post(f"{url}/fetch/mcp", stateless(request(1, "server/discover"))).status_code == 401
        assert ask(f"{url}/metrics").status_code == 200
        assert healthy(container, MCP_PORT=port)
        assert not healthy(container, MCP_PORT="1")
        size, held = added(container), memory(container)
        measured("bundle", size, held, until_it_listens(container.within(*image.entrypoint, MCP_PORT="0", **FOLDER)))
        check_size("bundle", size)
        stop(container.pid)
        assert server.wait() == 0, server.stderr()


def ask(url: str) -> httpx.Response:
    return httpx.get(url, headers=AUTHORIZED, trust_env=False, timeout=PATIENCE)


def until_it_listens(command: list[str]) -> float:
    """Milliseconds from the start until it takes requests, the quickest of three."""
    measured = []
    for _ in range(3):
        begun = time.perf_counter()
        with Raw([*command, "--host", "127.0.0.1"]) as server:
            assert re.match(r"http://127\.0\.0\.1:\d+/", listening(server))
            measured.append(time.perf_counter() - begun)
    return min(measured) * 1_000
