"""The Node that is chosen is one that can run the suite."""

import json
from pathlib import Path

import pytest

from tests.checks.conformance.suite import FOLDER, PACKAGE, pinned_version
from tests.npm import Unavailable, first_new_enough


def node(folder: Path, version: str) -> Path:
    path = folder / f"node-{version}"
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


def test_the_first_that_is_new_enough_is_taken(tmp_path: Path) -> None:
    old, new = node(tmp_path, "v20.20.2"), node(tmp_path, "v22.0.0")
    assert first_new_enough([old, new, node(tmp_path, "v24.1.0")]) == new


def test_an_old_one_is_refused_by_its_version(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="there is version 20"):
        first_new_enough([node(tmp_path, "v20.20.2")])


def test_none_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="there is one that does not run"):
        first_new_enough([tmp_path / "missing"])
    with pytest.raises(Unavailable, match="there is none"):
        first_new_enough([])


def test_the_lock_has_the_pinned_suite_and_names_no_registry() -> None:
    text = (FOLDER / "package-lock.json").read_text()
    assert json.loads(text)["packages"][f"node_modules/{PACKAGE}"]["version"] == pinned_version()
    assert '"resolved"' not in text
