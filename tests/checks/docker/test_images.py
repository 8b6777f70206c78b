"""Each image: built, and served by an unprivileged user on a read-only root, over stdio and HTTP with a token."""

import json
import subprocess

import pytest

from servers.catalog import Entry, load_catalog
from shared.version import __version__
from tests.checks.docker.containers import (
    Container,
    Measured,
    added,
    check_confined,
    check_size,
    children,
    container_of,
    healthy,
    memory,
    started,
    started_in,
    stop,
)
from tests.checks.docker.images import TOKEN, Image, build, needs_tool, service
from tests.checks.interop import pages
from tests.postgres_server import any_database
from tests.raw import Json, Raw, call, listening, post, request, stateless

START_SECONDS = 300.0
"""In which the tool has unpacked an image, and the server in it listens, on a machine with much to do."""
ENTRIES = load_catalog().servers
STDIO = {"filesystem": ["/data"], "sqlite": ["--demo"]}
WORK: dict[str, tuple[list[str], Json, str]] = {
    "filesystem": (["/opt"], call(1, "search_content", path="/opt", pattern="HEALTHCHECK"), "healthcheck.py"),
    "sqlite": (["--demo"], call(1, "read_query", query="SELECT 6 * 7 AS answer"), "42"),
    "postgres": (["DATABASE"], call(1, "read_query", query="SELECT 6 * 7 AS answer"), "42"),
    "fetch": (["--allow-private", "SITE"], call(1, "fetch", url="SITE/story"), "Paragraph number 1"),
    "prompts": ([], call(1, "render_prompt", name="explain-error", arguments={"error": "E42"}), "E42"),
    "everything": ([], call(1, "echo", text="hello"), "hello"),
}
"""With which arguments a server does a work for which it loads its libraries, and what is in the answer."""

pytestmark = [pytest.mark.timeout(1_500), needs_tool]


@pytest.fixture(scope="module", params=ENTRIES, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Entry:
    found: Entry = request.param
    return found


@pytest.fixture(scope="module")
def image(entry: Entry) -> Image:
    return build(entry.name)


def test_labels_agree_with_the_catalog(entry: Entry, image: Image) -> None:
    assert image.tag == entry.image
    assert image.entrypoint == [entry.script]
    said = {name.removeprefix("org.opencontainers.image."): text for name, text in image.config["Labels"].items()}
    assert (said["title"], said["description"], said["licenses"]) == (entry.title, entry.summary, entry.license)
    assert said["version"] == entry.version == __version__
    assert said["io.modelcontextprotocol.server.name"].split("/")[1:] == [entry.script]


def test_an_image_serves_over_stdio(entry: Entry, image: Image) -> None:
    with pages.served() as site:
        arguments, asked, expected = WORK[entry.name]
        arguments = [word.replace("SITE", site.removeprefix("http://")) for word in arguments]
        arguments = [any_database() if word == "DATABASE" else word for word in arguments]
        with started_in(image, arguments, {}) as server:
            server.open()
            server.send(json.loads(json.dumps(asked).replace("SITE", site)))
            assert expected in json.dumps(server.answer(1)["result"])
            container = container_of(image, server)
            check_confined(container)
            assert healthy(container)
            server.close_stdin()
            assert server.wait() == 0, server.stderr()


@pytest.mark.heavy
def test_an_image_serves_over_http(entry: Entry, image: Image, measured: Measured) -> None:
    arguments, environment = service(entry.name)
    served = serving(entry)
    arguments = arguments or served
    with started_in(image, arguments, environment) as server:
        port = listening(server, START_SECONDS).rsplit(":", 1)[1].removesuffix("/mcp")
        container = container_of(image, server)
        check_confined(container)
        asked = stateless(request(1, "server/discover"))
        url = f"http://localhost:{port}/mcp"
        assert post(url, asked).status_code == 401
        answer = post(url, asked, authorization=f"Bearer {TOKEN}")
        assert (answer.status_code, "result" in answer.json()) == (200, True), answer.text
        if "MCP_ALLOWED_HOST" in environment:
            assert post(url, asked, host="other.example", authorization=f"Bearer {TOKEN}").status_code == 403
        assert refused_without_token(container, served)
        assert healthy(container, MCP_TRANSPORT="http", MCP_PORT=port)
        assert not healthy(container, MCP_TRANSPORT="http", MCP_PORT="1")
        size, held = added(container), memory(container)
        measured(entry.name, size, held, started(container, served))
        check_size(entry.name, size)
        assert ends_in_order_as_process_1(container, served)
        stop(container.pid)
        assert server.wait() == 0, server.stderr()


def serving(entry: Entry) -> list[str]:
    """Arguments with which a server has something to serve."""
    return [any_database()] if entry.name == "postgres" else STDIO.get(entry.name, [])


def refused_without_token(container: Container, arguments: list[str]) -> bool:
    """Whether a server that listens beyond its container wants a token."""
    words = container.within(*container.image.entrypoint, *arguments, MCP_TRANSPORT="http", MCP_PORT="0")
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode == 2 and "--token-file" in done.stderr


def ends_in_order_as_process_1(container: Container, arguments: list[str]) -> bool:
    """Whether it obeys the signal that the kernel keeps from a process 1 which does not ask for it."""
    environment = {"MCP_TRANSPORT": "http", "MCP_TOKEN": TOKEN, "MCP_PORT": "0"}
    with Raw(container.within(*container.image.entrypoint, *arguments, first=True, **environment)) as server:
        listening(server)
        (pid,) = children(server)
        stop(pid)
        return server.wait() == 0
