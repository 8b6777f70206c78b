"""Each image builds, and serves as a user without rights on a read-only root: over stdio, and HTTP with a token."""

import os
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from servers.catalog import Entry, load_catalog
from shared.version import __version__
from tests.docker.images import TOKEN, Container, Image, build, needs_tool, running, service
from tests.faults.raw import INITIALIZE, Raw, request, stateless
from tests.faults.test_http_process import listening, post

ENTRIES = load_catalog().servers
MOST_MIB = 120  # over the base image
DRAIN_SECONDS = 10
STDIO = {"filesystem": ["/data"], "sqlite": ["--demo"]}
"""Arguments with which a server has something to serve."""
WITHIN = """
import importlib.util, pathlib, shutil, sys
assert not [name for name in ("cc", "gcc") if shutil.which(name)]
assert not [name for name in ("pip", "ensurepip", "setuptools") if importlib.util.find_spec(name)]
import shared.cli
for module in list(sys.modules.values()):
    if "site-packages" in str(getattr(module, "__cached__", "")):
        said = int.from_bytes(pathlib.Path(module.__cached__).read_bytes()[8:12], "little")
        assert said == int(pathlib.Path(module.__file__).stat().st_mtime), module
"""
"""What holds in an image: nothing in it installs or builds anything, and all modules are compiled."""

pytestmark = [pytest.mark.full, pytest.mark.timeout(900), needs_tool]


@pytest.fixture(scope="module", params=ENTRIES, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Entry:
    found: Entry = request.param
    return found


@pytest.fixture(scope="module")
def image(entry: Entry) -> Image:
    return build(entry.name)


def test_the_labels_are_those_of_the_catalog(entry: Entry, image: Image) -> None:
    assert image.tag == entry.image
    assert image.entrypoint == [entry.script]
    said = {name.removeprefix("org.opencontainers.image."): text for name, text in image.config["Labels"].items()}
    assert (said["title"], said["description"], said["licenses"]) == (entry.title, entry.summary, entry.licence)
    assert said["version"] == entry.version == __version__
    assert said["io.modelcontextprotocol.server.name"].split("/")[1:] == [entry.script]


def test_stdio(entry: Entry, image: Image) -> None:
    with Raw(image.command(STDIO.get(entry.name, []), {})) as server:
        server.send(INITIALIZE)
        assert server.answer("init")["result"]["serverInfo"]["name"] == entry.name
        with running(image, server) as container:
            check_confined(container)
            assert healthy(container)
        server.close_stdin()
        assert server.wait() == 0, server.stderr()


def test_http(entry: Entry, image: Image, rows: dict[str, str]) -> None:
    arguments, environment = service(entry.name)
    with Raw(image.command(arguments, environment)) as server:
        port = listening(server).rsplit(":", 1)[1].removesuffix("/mcp")
        with running(image, server) as container:
            check_confined(container)
            call = stateless(request(1, "server/discover"))
            url = f"http://localhost:{port}/mcp"
            assert post(url, call).status_code == 401
            answer = post(url, call, authorization=f"Bearer {TOKEN}")
            assert (answer.status_code, "result" in answer.json()) == (200, True), answer.text
            if "MCP_ALLOWED_HOST" in environment:
                assert post(url, call, host="other.example", authorization=f"Bearer {TOKEN}").status_code == 403
            assert refused_without_token(container, STDIO.get(entry.name, []))
            assert healthy(container, MCP_TRANSPORT="http", MCP_PORT=port)
            assert not healthy(container, MCP_TRANSPORT="http", MCP_PORT="1")
            rows[entry.name] = f"{added(container):4.0f} MiB  {started(container, entry):4.0f} ms"
            assert added(container) <= MOST_MIB
            stop(container)
        assert server.wait() == 0, server.stderr()


def check_confined(container: Container) -> None:
    """It has no rights, can write nowhere but in /tmp, and is made up of what serves and nothing else."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{container.pid}/status").read_text().splitlines())
    assert container.image.user >= 10_000
    assert set(status["Uid"].split()) == set(status["Gid"].split()) == {str(container.image.user)}
    assert int(status["CapEff"], 16) == 0
    assert os.statvfs(container.root).f_flag & os.ST_RDONLY
    subprocess.run(container.within("python", "-c", WITHIN), check=True, timeout=60)


def refused_without_token(container: Container, arguments: list[str]) -> bool:
    """Whether a server that listens beyond its container wants a token."""
    words = container.within(*container.image.entrypoint, *arguments, MCP_TRANSPORT="http", MCP_PORT="0")
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode == 2 and "--token-file" in done.stderr


def healthy(container: Container, **environment: str) -> bool:
    """What the health check of the image says."""
    test = container.image.config["Healthcheck"]["Test"]
    assert test[0] == "CMD"
    done = subprocess.run(container.within(*test[1:], **environment), capture_output=True, timeout=60, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0


def added(container: Container) -> float:
    """MiB that the image has over its base, which has nothing in /opt."""
    files = [path.lstat() for path in (container.root / "opt").rglob("*") if not path.is_dir()]
    return sum(file.st_size for file in files) / 2**20


def started(container: Container, entry: Entry) -> float:
    """Milliseconds from the start of the server to its first answer: the quickest of five."""
    words = container.within(*container.image.entrypoint, *STDIO.get(entry.name, []))
    measured = []
    for _ in range(5):
        begun = time.perf_counter()
        with Raw(words) as server:
            server.send(INITIALIZE)
            server.answer("init")
            measured.append(time.perf_counter() - begun)
            server.close_stdin()
            assert server.wait() == 0
    return min(measured) * 1_000


def stop(container: Container) -> None:
    """Sends SIGTERM, as engines do, and waits for the end of the server."""
    server = os.pidfd_open(container.pid)
    try:
        signal.pidfd_send_signal(server, signal.SIGTERM)
        assert select.select([server], [], [], DRAIN_SECONDS)[0], "it does not end"
    finally:
        os.close(server)
