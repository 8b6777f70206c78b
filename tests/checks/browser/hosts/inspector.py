"""MCP Inspector 2.12 as a host of MCP Apps: a program of Node with a page, which tests drive in Chromium."""

import base64
import json
import os
import re
import secrets
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.async_api import FrameLocator, Page, expect

from tests.checks.browser.hosts.peers import MODULES, require_node
from tests.ports import free_port

__all__ = ["Inspector", "run_inspector"]

PROGRAM = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
START_SECONDS = 60.0
LOAD_MS = 30_000
"""Its page has 4 MB of script."""


class Inspector:
    """A running inspector."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._token = token

    async def open(self, page: Page, url: str, tool: str, arguments: dict[str, Any]) -> FrameLocator:
        """Connects to the server at `url`, and shows the app of a tool; returns the document of its view."""
        page.set_default_timeout(LOAD_MS)
        given = base64.urlsafe_b64encode(json.dumps(arguments).encode()).decode().rstrip("=")
        link = {"serverUrl": url, "transport": "http", "autoConnect": self._token, "openApp": tool, "appArgs": given}
        await page.goto(f"{self._address}/?{urlencode(link)}")
        status = page.get_by_test_id("connection-status")
        await expect(status).to_have_attribute("data-status", "connected", timeout=LOAD_MS)
        await page.get_by_test_id("open-app").click()
        return page.frame_locator(f'iframe[title="{tool}"], iframe[src*="/sandbox"]').frame_locator("iframe")

    async def toggle_theme(self, page: Page) -> None:
        """Switches between the light and the dark theme."""
        await page.get_by_role("button", name="Toggle color scheme").click()


@contextmanager
def run_inspector(home: Path) -> Iterator[Inspector]:
    """Runs the inspector until the end of the block; what it remembers goes to `home`. It opens no browser."""
    node = require_node()
    token = secrets.token_hex(24)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HOST": "127.0.0.1",
        "CLIENT_PORT": str(free_port()),  # the inspector refuses port 0
        "MCP_SANDBOX_PORT": "0",
        "MCP_APP_ORIGIN_PORT": "0",
        "MCP_AUTO_OPEN_ENABLED": "false",
        "MCP_INSPECTOR_API_TOKEN": token,
        "MCP_INSPECTOR_SECRET_STORE": "memory",
    }
    with (home / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            [node, PROGRAM, "--web"],
            env=env,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
        )
        try:
            yield Inspector(_announced(process), token)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()


def _announced(process: subprocess.Popen[bytes]) -> str:
    """Returns the address that the inspector prints when its page is ready."""
    said = b""
    deadline = time.monotonic() + START_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(0, deadline - time.monotonic())):
            part = os.read(process.stdout.fileno(), 65536)
            said += part
            address = re.search(rb"running at:\s+(http://127\.0\.0\.1:\d+)\S*\s", said)
            if address:
                return address[1].decode()
            if not part:
                break
    raise AssertionError(f"the inspector does not start; it said: {said.decode()}")
