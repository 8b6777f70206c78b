"""Where pins are kept."""

from pathlib import Path

import pytest

from servers.bundle.hosts.clients import Machine
from servers.bundle.serve import pinned
from servers.bundle.serve.pinned import pins_path


def test_they_stand_beside_the_configuration_or_where_that_is_write_protected_with_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine("linux", tmp_path / "home", {})
    beside = tmp_path / "other.pins.json"
    assert pins_path(tmp_path / "bundle.yaml", "other", machine) == beside
    # Who runs the tests may be root, who may write everywhere.
    monkeypatch.setattr(pinned.os, "access", lambda path, mode: False)
    path = pins_path(tmp_path / "bundle.yaml", "other", machine)
    assert path.parent == tmp_path / "home/.local/state/mcp-server-bundle/pins"
    assert path.name.endswith("-other.pins.json")
    assert path != pins_path(tmp_path / "another.yaml", "other", machine)
    # Those that stand there count all the same.
    beside.write_text("{}")
    assert pins_path(tmp_path / "bundle.yaml", "other", machine) == beside
