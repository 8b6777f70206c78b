"""At the end of the run the images are listed, with what each adds to its base and how soon it answers."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.checks.docker.containers import Measured
from tests.checks.docker.debian import find_program
from tests.checks.docker.images import TOKEN
from tests.raw import FILES, Raw, call, listening, post, stateless
from tests.records import recorded
from tests.redis_server import RedisServer
from tests.wire import PATIENCE

MEASURED = "image"


@pytest.fixture
def measured(record_property: Callable[[str, Any], None]) -> Measured:
    """Takes the name of an image, what it adds and holds in MiB, and the milliseconds until it answers."""
    return lambda *figures: record_property(MEASURED, figures)


@pytest.fixture(scope="session")
def unpacked() -> Iterator[Path]:
    """Where programs are unpacked. Any user can get there, as none can into pytest's own folders."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def nginx(unpacked: Path) -> str:
    """The web server."""
    return find_program("nginx", "nginx", unpacked)


@pytest.fixture(scope="session")
def redis_server(unpacked: Path) -> str:
    """What replicas share."""
    return find_program("redis-server", "redis-server", unpacked)


@pytest.fixture(scope="session")
def promtool(unpacked: Path) -> str:
    """What checks the rules of Prometheus."""
    return find_program("promtool", "prometheus", unpacked)


@pytest.fixture(scope="session")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What /metrics says of a server that has refused a request and failed a call."""
    return _scraped(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="session")
def scraped_replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same of two workers that share a Redis."""
    store = RedisServer(tmp_path_factory.mktemp("redis"))
    store.start()
    try:
        yield _scraped(tmp_path_factory.mktemp("shared"), "--store", store.url, "--workers", "2")
    finally:
        store.stop()


def _scraped(folder: Path, *more: str) -> str:
    """What it says of a server of that folder with these options."""
    environment = {**os.environ, "MCP_TOKEN": TOKEN, "MCP_STATE_KEY": "of-all-replicas" * 3}
    authorization = {"authorization": f"Bearer {TOKEN}"}
    options = ["--transport", "http", "--port", "0", "--audit", str(folder.with_name(f"{folder.name}-audit")), *more]
    with Raw([*FILES, str(folder), *options], env=environment) as server:
        url = listening(server)
        failing = stateless(call(1, "get_file_info", path=str(folder / "missing")))
        assert post(url, failing).status_code == 401
        assert post(url, failing, **authorization).json()["result"]["isError"] is True
        metrics = url.removesuffix("/mcp") + "/metrics"
        return httpx.get(metrics, headers=authorization, trust_env=False, timeout=PATIENCE).text


def print_tables(terminalreporter: Any) -> None:
    """Prints the list."""
    images = list(recorded(terminalreporter, MEASURED))
    if images:
        terminalreporter.section("images")
    for name, size, held, milliseconds in images:
        terminalreporter.write_line(f"{name:10}  {size:4.0f} MiB  {held:4.0f} MiB of memory  {milliseconds:5.0f} ms")
