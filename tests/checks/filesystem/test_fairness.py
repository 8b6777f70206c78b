"""One client sends the most expensive calls, and another one is served meanwhile."""

import http.client
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from tests.raw import Raw, call, lines, listening, request, stateless
from tests.wire import PATIENCE

FILES = [sys.executable, "-m", "servers.filesystem"]
SECONDS = 3.0
BOUND = 10.0
"""Seconds: it is one on a machine that does nothing else, which `make bench` measures."""
LISTED = 300
EDITS = [{"oldText": f"line {number} ", "newText": f"LINE {number} "} for number in range(20_000)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree that takes seconds to search, a directory to list, and a file that takes minutes to edit."""
    root = tmp_path_factory.mktemp("tree")
    for number in range(20):
        (root / f"d{number}").mkdir()
        for inner in range(100):
            (root / f"d{number}" / f"{inner}.txt").write_text(f"the quick brown fox {inner} jumps\n" * 600)
    (root / "listed").mkdir()
    for number in range(LISTED):
        (root / "listed" / str(number)).touch()
    (root / "large").write_text("".join(f"line {number} {'x' * 100}\n" for number in range(45_000)))
    return root


class Caller:
    """A client over HTTP with an address of its own."""

    def __init__(self, url: httpx.URL, address: str) -> None:
        self._path = url.path
        self._connection = http.client.HTTPConnection(url.host, url.port or 0, 60, (address, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request of 2026-07-28."""
        headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": message["method"]}
        headers |= {"mcp-name": message["params"]["name"]} if "name" in message["params"] else {}
        self._connection.request("POST", self._path, lines(stateless(message)), headers)
        body = self._connection.getresponse().read()
        return dict(json.loads(body)) if body.startswith(b"{") else {}


@contextmanager
def greedy(url: httpx.URL, message: dict[str, Any], count: int) -> Iterator[None]:
    """So many calls of one client at once, again and again."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            try:
                with Caller(url, "127.0.0.2") as caller:
                    caller.ask(message)
            except (OSError, http.client.HTTPException):
                return  # the server has ended

    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    yield
    over.set()
    for thread in threads:
        thread.join(PATIENCE)


WORST = [
    "64 searches",
    "45 edits of a large file",
    "64 reads far into a huge file",
    "64 listings of a large directory",
    "64 reads of many files",
]


def of(what: str, tree: Path) -> dict[str, Any]:
    """A call that takes long."""
    match what.partition(" ")[2]:
        case "searches":
            return call(1, "search_content", path=str(tree), pattern="fox [0-9]+ [a-z]+zz", glob="*.txt")
        case "edits of a large file":
            return call(1, "edit_file", path=str(tree / "large"), edits=EDITS, dryRun=True)
        case "reads far into a huge file":
            with (tree / "huge").open("wb") as file:
                file.writelines((b"y" * 99 + b"\n") * 10_000 for _ in range(200))
            return call(1, "read_text_file", path=str(tree / "huge"), offset=1_999_999)
        case "reads of many files":
            return call(1, "read_multiple_files", paths=[str(path) for path in tree.glob("d1*/*.txt")][:1_000])
    (tree / "many").mkdir()
    for number in range(20_000):
        (tree / "many" / f"a name that takes some room {number}").touch()
    return call(1, "list_directory", path=str(tree / "many"))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("what", WORST)
def test_another_client_is_answered_during_expensive_calls(what: str, tree: Path) -> None:
    worst = of(what, tree)
    asked = [call(1, "list_directory", path=str(tree / "listed")), request(1, "tools/list")]
    with Raw([*FILES, "--root", f"{tree}:rw", "--transport", "http", "--port", "0"]) as server:
        url = httpx.URL(listening(server))
        with Caller(url, "127.0.0.3") as modest, greedy(url, worst, int(what.split(maxsplit=1)[0])):
            took: dict[str, list[float]] = {message["method"]: [] for message in asked}
            end = time.monotonic() + SECONDS
            while time.monotonic() < end or len(took["tools/list"]) < 10:
                for message in asked:
                    began = time.monotonic()
                    assert "result" in modest.ask(message)
                    took[message["method"]].append(time.monotonic() - began)
            server.process.kill()
    for method, times in took.items():
        assert sorted(times)[int(len(times) * 0.99) - 1] < BOUND, method


def test_edits_end_at_their_time_limit(tree: Path) -> None:
    before = (tree / "large").read_bytes()
    with Raw([*FILES, "--root", f"{tree}:rw", "--max-seconds", "0.5"]).open() as server:
        began = time.monotonic()
        server.send(call(1, "edit_file", path=str(tree / "large"), edits=EDITS))
        answer = server.answer(1)
        assert "stopped after 0.5 s" in answer["result"]["content"][0]["text"]
        assert time.monotonic() - began < PATIENCE / 2
        assert (tree / "large").read_bytes() == before


def test_edits_end_when_they_are_cancelled(tree: Path) -> None:
    before = (tree / "large").read_bytes()
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    with Raw([*FILES, "--root", f"{tree}:rw"]).open() as server:
        server.send(call(1, "edit_file", path=str(tree / "large"), edits=EDITS), request(3, "ping"))
        server.answer(3)
        server.send(cancelled)
        # The lock of the file is free again as soon as the first edit has ended.
        server.send(call(2, "edit_file", path=str(tree / "large"), edits=EDITS[:1], dryRun=True))
        assert "LINE 0" in server.answer(2)["result"]["content"][0]["text"]
        assert (tree / "large").read_bytes() == before
