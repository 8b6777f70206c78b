"""Where pins are kept."""

from pathlib import Path

import pytest

from servers.bundle.hosts.clients import Machine
from servers.bundle.serve import pinned
from servers.bundle.serve.pinned import pins_path


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine("linux", tmp_path / "home", {})


@pytest.fixture
def write_protected(monkeypatch: pytest.MonkeyPatch) -> None:
    # Who runs the tests may be root, who may write everywhere.
    monkeypatch.setattr(pinned.os, "access", lambda path, mode: False)


def test_they_stand_beside_the_configuration(tmp_path: Path, machine: Machine) -> None:
    assert pins_path(tmp_path / "bundle.yaml", "other", machine) == tmp_path / "other.pins.json"


@pytest.mark.usefixtures("write_protected")
def test_where_that_is_write_protected_they_are_the_users(tmp_path: Path, machine: Machine) -> None:
    path = pins_path(tmp_path / "bundle.yaml", "other", machine)
    assert path.parent == tmp_path / "home/.local/state/mcp-server-bundle/pins"
    assert path.name.endswith("-other.pins.json")
    assert path != pins_path(tmp_path / "another.yaml", "other", machine)


@pytest.mark.usefixtures("write_protected")
def test_those_that_stand_there_count_all_the_same(tmp_path: Path, machine: Machine) -> None:
    (tmp_path / "other.pins.json").write_text("{}")
    assert pins_path(tmp_path / "bundle.yaml", "other", machine) == tmp_path / "other.pins.json"
