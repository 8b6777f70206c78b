"""Chromium of Debian, which tests drive through Playwright.

Debian builds the same source twice. The one without windows comes first: it takes a third of the time.
"""

import os
import shutil

import pytest

__all__ = ["ARGUMENTS", "NAMES", "find_chromium", "locate_chromium"]

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
# A container has no user namespaces for the sandbox, and little shared memory.
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--force-prefers-reduced-motion"]


def locate_chromium() -> str | None:
    """Returns the program, or None if it is missing. MCP_TEST_CHROMIUM names another."""
    return os.environ.get("MCP_TEST_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def find_chromium() -> str:
    """Returns the program; without it, skips the test, and fails under CI=true."""
    found = locate_chromium()
    if found is None:
        reason = "Chromium is not installed (Debian: apt install chromium-headless-shell)"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    return found
