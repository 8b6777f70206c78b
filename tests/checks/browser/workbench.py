"""`serve` with its servers, for a browser."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

from tests.checks.faults.raw import ROOT
from tests.servers.bundle.commands.test_serve import serving
from tests.shared.transports.http.http_wire import PATIENCE

__all__ = ["Workbench", "serve_workbench"]

ARTICLE = b"""<!doctype html><html lang="en"><title>On tea</title><article><h1>On tea</h1>
<p>Tea is a drink made of leaves and hot water, and has been drunk for some thousand years in many places.</p>
<h2>Green</h2><p>Its leaves are not oxidised. See <a href="https://example.org/green">more on green tea</a>, which is
drunk most of all in China and Japan.</p></article></html>"""


class Workbench:
    """Where the page is, the folder that the server of files has, and a page for that of pages to read."""

    def __init__(self, url: str, folder: Path, article: str) -> None:
        self.url = url
        self.folder = folder
        self.article = article

    def at(self, *parts: str) -> str:
        """The address of a panel."""
        return f"{self.url}/#/{'/'.join(parts)}"


@contextmanager
def serve_workbench(folder: Path, **options: Any) -> Iterator[Workbench]:
    """The four servers, the one for trying out clients, and one of somebody hostile, until the end of the block."""
    files = folder / "files"
    (files / "notes").mkdir(parents=True)
    (files / "notes" / "a.txt").write_text("one\ntwo\nthree\n")
    with _article() as port:
        local = {"allow-private": [f"127.0.0.1:{port}"], "allow-port": [port]}
        hostile = {"command": [sys.executable, "-m", "tests.checks.browser.hostile_server"], "cwd": str(ROOT)}
        servers = {
            "filesystem": {"root": [f"{files}:rw"]},
            "sqlite": {"demo": True},
            "fetch": local,
            "prompts": {},
            "everything": {},
            "hostile": hostile,
        }
        config = folder / "bundle.yaml"
        config.write_text(json.dumps({**options, "servers": servers}))
        config.chmod(0o600)
        with serving(folder, "--config", config) as (process, url):
            while httpx.get(f"{url}/readyz", timeout=PATIENCE, trust_env=False).status_code != 200:
                pass
            yield Workbench(url, files, f"http://127.0.0.1:{port}/tea")
            process.process.terminate()
            assert process.wait() == 0


@contextmanager
def _article() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Article)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Article(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_there = self.path == "/tea"
        self.send_response(200 if is_there else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(ARTICLE) if is_there else 0))
        self.end_headers()
        self.wfile.write(ARTICLE if is_there else b"")

    def log_message(self, *_: object) -> None:
        """Says nothing."""
