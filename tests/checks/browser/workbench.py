"""`serve` and its servers, for a browser."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.raw import ROOT
from tests.servers.bundle.commands.test_serve import serving
from tests.shared.transports.http.http_wire import PATIENCE
from tests.web_site import serve_site

__all__ = ["TOKEN", "Workbench", "serve_workbench"]

TOKEN = "hunter2-hunter2"

ARTICLE = """<!doctype html><html lang="en"><title>On tea</title><article><h1>On tea</h1>
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
        """Returns the address of a panel."""
        return f"{self.url}/#/{'/'.join(parts)}"


@contextmanager
def serve_workbench(folder: Path, **options: Any) -> Iterator[Workbench]:
    """The four servers, the one for trying out clients, and one of somebody hostile, until the end of the block."""
    files = folder / "files"
    (files / "notes").mkdir(parents=True)
    (files / "notes" / "a.txt").write_text("one\ntwo\nthree\n")
    site = folder / "site"
    site.mkdir()
    (site / "tea.html").write_text(ARTICLE)
    with serve_site(site) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        local = {"allow-private": [f"{host}:{port}"], "allow-port": [int(port)]}
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
            yield Workbench(url, files, f"{address}/tea.html")
            process.process.terminate()
            assert process.wait() == 0
