"""The plugins that `export` writes: the questions of each host, and the wheel and skills in them."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from servers.catalog import Entry, load_catalog
from tests.servers.bundle.exports.test_exports import ENTRIES, each, exported

__all__ = ["exported"]


def read(exported: Path, name: str, file: str) -> dict[str, Any]:
    return json.loads((exported / name / "plugin" / file).read_text())


def test_the_marketplace_lists_a_folder_for_each_server(exported: Path) -> None:
    marketplace = json.loads((exported / ".claude-plugin" / "marketplace.json").read_text())
    assert marketplace["name"] == "mcp-server-bundle"
    listed = [(plugin["name"], plugin["description"]) for plugin in marketplace["plugins"]]
    assert listed == [(entry.name, entry.summary) for entry in ENTRIES]
    assert all((exported / plugin["source"] / "gemini-extension.json").is_file() for plugin in marketplace["plugins"])


@each
def test_every_host_sets_the_same_variables(entry: Entry, exported: Path) -> None:
    claude = read(exported, entry.name, ".claude-plugin/plugin.json")
    codex = read(exported, entry.name, read(exported, entry.name, ".codex-plugin/plugin.json")["mcpServers"])
    gemini = read(exported, entry.name, "gemini-extension.json")
    assert (claude["name"], claude["displayName"]) == (entry.name, entry.title)
    variables = claude["mcpServers"][entry.name]["env"]
    assert list(variables.values()) == [f"${{user_config.{name}}}" for name in claude["userConfig"]]
    assert codex["mcpServers"][entry.name]["env_vars"] == list(variables)
    assert [setting["envVar"] for setting in gemini["settings"]] == list(variables)


@pytest.mark.parametrize(
    ("server", "option", "expected"),
    [
        ("filesystem", "roots", {"type": "directory", "required": True}),
        ("filesystem", "allow_write", {"type": "boolean", "required": False, "default": False}),
        ("sqlite", "databases", {"type": "file", "required": False, "default": ""}),
        ("postgres", "databases", {"type": "string", "required": True, "sensitive": True}),
    ],
)
def test_an_option_has_its_type_default_and_secrecy(
    server: str, option: str, expected: dict[str, Any], exported: Path
) -> None:
    field = read(exported, server, ".claude-plugin/plugin.json")["userConfig"][option]
    assert {name: value for name, value in field.items() if name not in ("title", "description")} == expected


def test_a_connection_url_is_a_secret_of_gemini_too(exported: Path) -> None:
    settings = read(exported, "postgres", "gemini-extension.json")["settings"]
    assert [setting["name"] for setting in settings if setting.get("sensitive")] == ["Databases"]


def test_the_wheel_has_the_sources_of_the_bundle_and_a_script(exported: Path) -> None:
    entry = load_catalog().entry("sqlite")
    (path,) = (exported / "sqlite" / "plugin").glob("*.whl")
    wheel = zipfile.ZipFile(path)
    bundle = zipfile.ZipFile(exported / "sqlite" / f"sqlite-{entry.version}.mcpb")
    packages = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert packages == [name for name in bundle.namelist() if name.startswith(("servers/", "shared/"))]
    (info,) = {name.partition("/")[0] for name in wheel.namelist()} - {"servers", "shared"}
    points = wheel.read(f"{info}/entry_points.txt").decode()
    assert points == "[console_scripts]\nmcp-bundle-sqlite = servers.sqlite.__main__:main\n"
    lines = wheel.read(f"{info}/METADATA").decode().splitlines()
    needed = [Requirement(line.partition(": ")[2]).name for line in lines if line.startswith("Requires-Dist: ")]
    assert {"anyio", "pydantic", "aiosqlite"} <= set(needed)
    recorded = [line.partition(",")[0] for line in wheel.read(f"{info}/RECORD").decode().splitlines()]
    assert recorded == wheel.namelist()


def test_the_plugin_has_the_skills_of_its_server(exported: Path) -> None:
    plugins = {entry.name: exported / entry.name / "plugin" for entry in ENTRIES}
    skills = {name: sorted(path.name for path in folder.glob("skills/*")) for name, folder in plugins.items()}
    assert {name: folders for name, folders in skills.items() if folders} == {"everything": ["try-a-client"]}
    source = Path(__file__).parents[4] / "servers" / "everything" / "try-a-client"
    copied = plugins["everything"] / "skills" / "try-a-client"
    files = [path.relative_to(source) for path in source.rglob("*") if path.is_file()]
    assert len(files) == 2
    assert all((copied / name).read_bytes() == (source / name).read_bytes() for name in files)
