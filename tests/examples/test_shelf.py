"""The server of books, driven by the client beside it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_client_lends_a_book_and_receives_the_update() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples/shelf/client.py")],
        capture_output=True,
        text=True,
        timeout=110,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ran.stdout.splitlines() == [
        "['My life']",
        "lent for 7 days",
        "book://My%20life",
        "there is no book 'Persuasion'",
    ]
