"""What tests record is there when the tables are printed, whichever process ran them."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.conftest import TABLES

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
@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_table_has_what_each_test_recorded_once(tmp_path: Path, workers: int) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-n", str(workers), "--dist", "loadfile"]
    # Plugins that this needs none of take most of its time to load, in two processes.
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, "--rootdir", "."], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
    )
    assert "table: [('of', 0), ('of', 1), ('of', 2)]" in done.stdout.splitlines(), done.stdout + done.stderr


@pytest.mark.parametrize(("name", "module"), TABLES.items())
def test_each_table_is_printed_by_what_records_it(name: str, module: str) -> None:
    folder = vars(import_module(module))
    assert (name in folder.values(), callable(folder["print_tables"])) == (True, True)


def test_no_folder_prints_by_itself_what_other_processes_record() -> None:
    """A folder's own hook is not called where workers run its tests."""
    found = [
        path for path in (ROOT / "tests").rglob("conftest.py") if "def pytest_terminal_summary" in path.read_text()
    ]
    assert found == [ROOT / "tests" / "conftest.py"]
