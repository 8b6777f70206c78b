"""Where two processes need the same thing installed, one installs it and the other waits."""

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tests import npm, pypi

# Stand-ins for programs that take a minute and the network: each tells that it was run.
PYTHON = """#!/bin/sh
echo "$2" >> {told}
[ "$2" = pip ] || {{ mkdir -p {folder}/bin && cp "$0" {folder}/bin/python; }}
"""
NODE = """#!/bin/sh
echo install >> {told}
mkdir node_modules && echo '{installed}' > node_modules/.package-lock.json
"""


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def by_two(need: Callable[[], object]) -> None:
    """What two need who begin at the same moment. A lock is of one descriptor: it holds between threads as well."""
    both = Barrier(2)
    with ThreadPoolExecutor(2) as threads:
        for needed in [threads.submit(lambda: (both.wait(), need())) for _ in range(2)]:
            needed.result()


def test_an_environment_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, told, folder = tmp_path / "requirements.txt", tmp_path / "told", tmp_path / ".venv-name"
    wanted.touch()
    python = program(tmp_path / "python", PYTHON.format(told=told, folder=folder))
    monkeypatch.setattr(pypi, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "executable", str(python))
    by_two(lambda: pypi.require("name", wanted))
    assert told.read_text().split() == ["venv", "pip"]


def test_packages_of_npm_are_installed_once(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(json.dumps({"dependencies": {"one": "1.0"}}))
    told, installed = tmp_path / "told", json.dumps({"packages": {"node_modules/one": {"version": "1.0"}}})
    node = program(tmp_path / "bin" / "node", NODE.format(told=told, installed=installed))
    program(tmp_path / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js", "")
    by_two(lambda: npm.require(node, tmp_path, "one"))
    assert told.read_text().split() == ["install"]
