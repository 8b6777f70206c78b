"""A server without its extra reports it at startup, although it loads those libraries later."""

import subprocess
import sys
from pathlib import Path

import pytest

from shared.program.messages import missing_extra_message

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("server", "library"), [("sqlite", "aiosqlite"), ("postgres", "psycopg")])
def test_a_database_server_reports_its_missing_extra_at_startup(server: str, library: str) -> None:
    start = f"import sys; sys.modules[{library!r}] = None; from servers.{server}.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", start], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [f"-c: {missing_extra_message(server)}"]
