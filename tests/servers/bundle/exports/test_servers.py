"""The export of another catalog: its package, its sources, and hostile texts."""

import json
import zipfile
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
import yaml

from servers.bundle.commands.export import main
from tests.servers.bundle.refusals import refused

HOSTILE = "$(reboot) `reboot` ${HOME} {{fetch.x}} {x} 'q' \"q\" - a: b # c"
ENTRY: dict[str, Any] = {
    "name": "dice", "title": HOSTILE, "version": "1.0", "summary": "Rolls.", "description": HOSTILE,
    "category": "testing", "module": "dice.server", "script": "mcp-dice", "image": "dice", "transports": ["stdio"],
    "arguments": [
        {"name": "sides", "type": "integer", "description": HOSTILE, "option": "--sides", "required": True},
        {"name": "log", "type": "file", "description": "log", "option": "--log", "environment": "LOG", "default": "a"}
    ],
}  # fmt: skip


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Writes a package with the script `mcp-dice` as pip does, in a hidden folder; returns that folder."""
    tmp_path = tmp_path / ".cache"
    info = tmp_path / "mcp_dice-1.0.dist-info"
    info.mkdir(parents=True)
    requirements = "Requires-Dist: regex>=1\nRequires-Dist: rich>=2; extra == 'nice'\nProvides-Extra: nice\n"
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: mcp-dice\nVersion: 1.0\nAuthor: Ann\n{requirements}"
    )
    (info / "entry_points.txt").write_text("[console_scripts]\nmcp-dice = dice.server:main\n")
    (tmp_path / "dice" / "__pycache__").mkdir(parents=True)
    for name in ("__init__.py", "server.py", "faces.txt", ".hidden", "__pycache__/server.pyc"):
        (tmp_path / "dice" / name).touch()
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def export(folder: Path, **changes: Any) -> int:
    (folder / "catalog.yaml").write_text(yaml.safe_dump({"servers": [{**ENTRY, **changes}]}))
    return main(["--catalog", str(folder / "catalog.yaml"), "--output", str(folder / "out")])


def manifest_of(folder: Path) -> dict[str, Any]:
    return json.loads(zipfile.ZipFile(folder / "out" / "dice" / "dice-1.0.mcpb").read("manifest.json"))


def test_a_package_named_like_its_script_needs_no_runtime_arguments(installed: Path) -> None:
    assert export(installed) == 0
    (package,) = json.loads((installed / "out" / "dice" / "server.json").read_text())["packages"]
    assert package["identifier"] == "mcp-dice"
    assert [one["name"] for one in package["packageArguments"]] == ["--sides"]
    assert "runtimeArguments" not in package


def test_the_bundle_has_all_sources_of_the_package(installed: Path) -> None:
    export(installed)
    names = zipfile.ZipFile(installed / "out" / "dice" / "dice-1.0.mcpb").namelist()
    assert [name for name in names if "/" in name] == ["dice/__init__.py", "dice/faces.txt", "dice/server.py"]


def test_the_bundle_requires_the_extra_of_the_catalog(installed: Path) -> None:
    export(installed, extra="nice")
    project = zipfile.ZipFile(installed / "out" / "dice" / "dice-1.0.mcpb").read("pyproject.toml").decode()
    assert '"rich>=2"' in project


def test_hostile_texts_are_exported_as_plain_text(installed: Path) -> None:
    export(installed)
    manifest = manifest_of(installed)
    assert manifest["display_name"] == manifest["long_description"] == HOSTILE
    assert manifest["server"]["mcp_config"]["args"][3:] == ["main.py", "--sides", "${user_config.sides}"]
    container = yaml.safe_load((installed / "out" / "dice" / "dice.yaml").read_text())
    assert container["title"] == HOSTILE
    assert container["command"] == ["--sides", "{{dice.sides}}"]


def test_a_plugin_needs_variables_for_all_required_arguments(installed: Path) -> None:
    export(installed)
    assert not (installed / "out" / "dice" / "plugin").exists()
    assert not (installed / "out" / ".claude-plugin").exists()
    rmtree(installed / "out")
    export(installed, arguments=[{**ENTRY["arguments"][0], "environment": "SIDES"}])
    described = json.loads((installed / "out" / "dice" / "plugin" / ".claude-plugin" / "plugin.json").read_text())
    assert described["mcpServers"]["dice"]["env"] == {"SIDES": "${user_config.sides}"}


def test_a_required_secret_has_an_example(installed: Path) -> None:
    key = {"name": "key", "type": "string", "description": "key", "option": "--key", "environment": "KEY"}
    export(installed, arguments=[{**key, "required": True, "secret": True}])
    container = yaml.safe_load((installed / "out" / "dice" / "dice.yaml").read_text())
    assert container["secrets"] == [{"name": "dice.key", "env": "KEY", "example": "your_key"}]


@pytest.mark.parametrize("icon", ["https://dice.example/icon.png", "dice/faces.txt"])
def test_an_icon_that_hosts_cannot_show_is_omitted(icon: str, installed: Path) -> None:
    export(installed, icon=icon)
    container = yaml.safe_load((installed / "out" / "dice" / "dice.yaml").read_text())
    assert container.get("icon") == (icon if "://" in icon else None)
    assert "icon" not in manifest_of(installed)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"version": "../../1"}, "can't be part of a file name"),
    ({"script": "mcp-cards"}, "no package installed here has the console script mcp-cards"),
    ({"script": None}, "the catalog has no script for it"),
    ({"icon": "icon.png"}, "icon.png: No such file or directory"),
    ({"module": "cards"}, "the Python module 'cards'"),
    ({"arguments": [{**ENTRY["arguments"][1], "default": "${HOME}"}]}, "a host would substitute something"),
    ({"arguments": [{**ENTRY["arguments"][1], "name": "a}b"}]}, "arguments.1.name"),
]


def test_an_entry_that_cannot_be_exported_is_refused(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for changes, reason in REFUSED:
        assert reason in refused(capsys, lambda _, changes=changes: export(installed, **changes))
        assert not (installed / "out").exists()
