"""Findings about the installation: its libraries, and the scripts that start the servers."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from servers.bundle.doctor.findings import Severity, check_libraries
from servers.bundle.doctor.installation import check_installation, this_installation
from shared.program.installation import Installation as BareInstallation
from tests.servers.bundle.doctor.machines import CATALOG, ROOT, installed, wheel_of

SQLITE = CATALOG.entry("sqlite")


def test_a_missing_library_is_a_fault(tmp_path: Path) -> None:
    installation = installed(tmp_path, requires="no-such-library>=1")
    found = list(check_installation(installation, [SQLITE], ["sqlite"]))[-1]
    assert found.severity is Severity.FAULT
    assert found.what == "its extra 'sqlite' is not installed: no-such-library"
    assert found.fix == f"{tmp_path}/bin/python -m pip install '{wheel_of(tmp_path)}[sqlite]'"


def test_an_outdated_library_of_an_unused_server_is_a_warning(tmp_path: Path) -> None:
    found = list(check_installation(installed(tmp_path, requires="pyyaml>=99"), [SQLITE], []))[-1]
    assert re.search(r"pyyaml>=99 \(\S+ is installed\)", found.what)
    assert found.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("", "they are missing"),
        ("#!/nowhere/bin/python3\n", "the programs start /nowhere/bin/python3, which does not exist"),
        (f"#!{sys.executable}\n", f"the programs start another Python, {sys.executable}"),
        (
            f'#!/bin/sh\n\'\'\'exec\' "{sys.executable}" "$0" "$@"\n',
            f"the programs start another Python, {sys.executable}",
        ),
        ("#!/bin/sh\n'''exec' '/a b/python' \"$0\"\n' '''\n", "the programs start /a b/python, which does not exist"),
    ],
    ids=["missing", "dead", "foreign", "foreign, by way of a shell of pip", "dead, by way of a shell of uv"],
)
def test_an_unusable_console_script_is_a_fault(script: str, what: str, tmp_path: Path) -> None:
    _, found, *_ = check_installation(installed(tmp_path, script=script), [], [])
    assert found.severity is Severity.FAULT
    assert found.what == f"{what}: mcp-bundle-sqlite"
    again = f"--force-reinstall --no-deps {wheel_of(tmp_path)}"
    assert found.fix == f"reinstall them: {tmp_path}/bin/python -m pip install {again}"


def test_a_bundle_without_a_distribution_is_a_warning(tmp_path: Path) -> None:
    (found,) = check_installation(installed(tmp_path)._replace(distribution=None), [], [])
    assert found.severity is Severity.WARNING
    assert found.fix == f"install it: {this_installation().install_command('all')}"


@pytest.mark.slow
def test_doctor_names_its_own_missing_libraries() -> None:
    # `None` in sys.modules has the same effect as a missing library.
    script = (
        "import sys; sys.modules['rich'] = None; from servers.bundle.program import main; sys.exit(main(['doctor']))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    first, *_, last = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (1, "")
    assert first.startswith("ok      ")
    assert last.startswith("fault   doctor: clients and servers were not checked, because the extra 'catalog'")
    assert last.endswith(f". Fix: {this_installation().install_command('catalog')}")


def test_doctor_without_its_libraries_checks_those_of_servers(tmp_path: Path) -> None:
    installation = installed(tmp_path, requires="no-such-library>=1")
    found = list(check_libraries(BareInstallation.from_site(installation.python, tmp_path / "lib")))
    assert [(one.severity, one.where) for one in found][1:] == [
        (Severity.WARNING, "sqlite"), (Severity.FAULT, "doctor"),
    ]  # fmt: skip
    assert found[1].what == "its extra 'sqlite' is not installed: no-such-library"
