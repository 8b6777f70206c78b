"""What tests record is there when the tables are printed, whichever process ran them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONFTEST = """
from tests.records import recorded
def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"table: {list(recorded(terminalreporter, 'row'))}")
"""
TESTS = """
import pytest
@pytest.mark.parametrize("number", range(3))
def test_it(number, record_property):
    record_property("row", ("of", number))
    assert number != 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_a_table_has_what_each_test_recorded_once(tmp_path: Path, workers: int) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", str(workers), "--dist", "loadfile"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "--rootdir", "."], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
    )
    assert "table: [('of', 0), ('of', 1), ('of', 2)]" in done.stdout.splitlines(), done.stdout + done.stderr
