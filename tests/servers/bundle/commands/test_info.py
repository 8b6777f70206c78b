"""`list` and `info`: the catalog as text and JSON."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from servers.bundle.program import main
from servers.catalog import Catalog, load_catalog

ROOT = Path(__file__).resolve().parents[4]
ENTRIES = load_catalog().servers
DICE = {
    "name": "dice", "title": "Dice", "version": "1", "summary": "Rolls.", "description": "Rolls dice.",
    "category": "testing", "module": "dice.server", "transports": ["stdio"], "resources": ["dice://\x1b[31mred"],
}  # fmt: skip


@pytest.fixture
def dice(tmp_path: Path) -> str:
    path = tmp_path / "catalog.yaml"
    path.write_text(yaml.safe_dump({"servers": [DICE]}))
    return str(path)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")


def test_list_shows_each_server_and_its_permissions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    for entry in ENTRIES:
        (line,) = [line for line in shown.splitlines() if line.startswith(f"{entry.name} ")]
        assert entry.summary in line
        assert (f"changes nothing without {entry.permissions.writing}" in line) == bool(entry.permissions.writing)
    assert "opens none of your files except those you name with DIR, --root; connects to no other host" in shown
    assert "connects to hosts on the public internet; changes nothing" in shown


def test_info_shows_every_field_of_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    for entry in ENTRIES:
        assert main(["info", entry.name]) == 0
        shown = capsys.readouterr().out
        expected = [
            entry.title,
            entry.description,
            *entry.tools.read,
            *entry.tools.write,
            *entry.prompts,
            entry.license,
        ]
        expected += [entry.category, entry.icon, entry.module]
        expected += [*entry.resources, *entry.resource_templates, entry.documentation]
        for one in entry.arguments:
            expected += [one.description, one.environment, one.option or one.metavar]
        assert [text for text in expected if text not in shown] == []
        words = " ".join(shown.split())
        for scope, tools in entry.scopes.items():
            also = ", as resources and prompts do" if scope.endswith(":read") else ""
            assert f"Tools that need the scope {scope}{also} {', '.join(tools)}" in words


def test_json_output_is_the_catalog_and_its_entries(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    assert Catalog.model_validate_json(capsys.readouterr().out) == load_catalog()
    assert main(["info", "sqlite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == load_catalog().entry("sqlite").model_dump(mode="json")


def test_info_shows_how_to_start_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    main(["info", "filesystem"])
    shown = capsys.readouterr().out
    assert "Start over stdio\n  mcp-bundle-filesystem DIR\n" in shown
    assert "Start over HTTP\n  mcp-bundle-filesystem --transport http --port 8000 DIR\n" in shown
    assert "config filesystem DIR --client CLIENT\n" in shown
    main(["info", "prompts"])
    assert "Tools that write, with --allow-write\n  save_prompt, delete_prompt\n" in capsys.readouterr().out


def test_info_shows_another_catalog_without_escape_codes(dice: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "dice", "--catalog", dice]) == 0
    shown = capsys.readouterr().out
    assert "python -m dice.server" in shown
    # Its texts can't colour the terminal.
    assert "dice://" in shown
    assert "\x1b" not in shown


@pytest.mark.slow
def test_icons_and_documentation_exist_in_a_wheel(tmp_path: Path) -> None:
    for package in ("servers", "shared"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "catalog.yaml", tmp_path / "servers")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "servers", "list", "--json"], cwd=tmp_path, env=env, capture_output=True, check=True
    )
    for entry in json.loads(done.stdout)["servers"]:
        for name in ("icon", "documentation"):
            assert Path(entry[name]).is_file()
            assert Path(entry[name]).is_relative_to(tmp_path)


def test_documentation_of_another_catalog_is_a_path_or_url(dice: str) -> None:
    path = str(Path(dice).parent / "docs" / "dice.md")
    for written, shown in (("docs/dice.md", path), ("https://dice.example/manual", "https://dice.example/manual")):
        Path(dice).write_text(yaml.safe_dump({"servers": [{**DICE, "documentation": written}]}))
        assert load_catalog(Path(dice)).servers[0].documentation == shown
