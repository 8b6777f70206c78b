"""Files that `export` writes: valid for their readers, with commands that start the server."""

import json
import os
import struct
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from servers.bundle.commands.export import main
from servers.catalog import Entry, load_catalog
from tests import schemas
from tests.postgres_server import any_database
from tests.raw import BARE
from tests.wire import Wire

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
SERVER_JSON = schemas.SPEC_DIR / "packaging" / "server-2025-12-11.schema.json"
FETCH = (
    f"curl --create-dirs -o {SERVER_JSON} "
    "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
)
ENTRIES = load_catalog().servers
VERSION = ENTRIES[0].version
"""The environment, without what would lead to other sources than those of the bundle."""

each = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    assert main(["--output", str(folder)]) == 0
    return folder


def described(exported: Path, entry: Entry) -> dict[str, Any]:
    return json.loads((exported / entry.name / "server.json").read_text())


def opened(exported: Path, entry: Entry) -> zipfile.ZipFile:
    return zipfile.ZipFile(exported / entry.name / f"{entry.name}-{entry.version}.mcpb")


def manifest_of(exported: Path, entry: Entry) -> dict[str, Any]:
    return json.loads(opened(exported, entry).read("manifest.json"))


def chosen(entry: Entry, folder: Path) -> dict[str, Any]:
    """Returns the choices of a user of a desktop host, so that the server has something to serve."""
    (folder / "data.db").touch()
    picked = {"directory": [str(folder)], "file": [str(folder / "data.db")]}
    return {
        one.name: picked[one.type] if one.type in picked else any_database()
        for one in entry.arguments
        if one.option is None
    }


# For the MCP registry


@pytest.mark.skipif(
    not SERVER_JSON.is_file() and os.environ.get("CI") != "true",
    reason=f"needs the official schema of server.json: {FETCH}",
)
def test_the_registry_document_conforms_to_the_official_schema(exported: Path) -> None:
    """The manifest of a bundle is checked by its official tool, in tests/checks/bundle/test_mcpb.py."""
    registry = json.loads(SERVER_JSON.read_text())
    for entry in ENTRIES:
        document = described(exported, entry)
        jsonschema.Draft7Validator(registry, format_checker=jsonschema.FormatChecker()).validate(document)
        assert document["$schema"] == registry["$id"]


def test_every_catalog_argument_is_in_the_registry_document_once(exported: Path) -> None:
    for entry in ENTRIES:
        unnamed = [one.name for one in entry.arguments if one.option is None and not one.secret]
        expected = sorted(one.name if one.name in unnamed else str(one.environment) for one in entry.arguments)
        own = f"MCP_{entry.name}_".upper()
        for package in described(exported, entry)["packages"]:
            listed = [one["valueHint"] for one in package["packageArguments"] if "valueHint" in one]
            listed += [one["name"] for one in package["environmentVariables"] if one["name"].startswith(own)]
            assert sorted(listed) == expected


def test_an_argument_keeps_its_type_default_and_secrecy(exported: Path) -> None:
    package = described(exported, load_catalog().entry("fetch"))["packages"][0]
    variables = {one.pop("name"): one for one in package["environmentVariables"]}
    assert variables["MCP_FETCH_PROXY_URL"]["isSecret"] is True
    assert variables["MCP_FETCH_IGNORE_ROBOTS"]["format"] == "boolean"
    assert variables["MCP_FETCH_IGNORE_ROBOTS"]["default"] == "false"
    assert variables["MCP_FETCH_TIMEOUT"]["default"] == "20"
    assert variables["MCP_FETCH_ALLOW_PORT"]["default"] == "80,443"
    assert "format" not in variables["MCP_FETCH_ALLOW_PORT"]


def test_the_registry_arguments_start_the_server(exported: Path) -> None:
    # As VS Code does: runtime arguments, identifier with version, package arguments.
    entry = load_catalog().entry("sqlite")
    words = []
    for package in described(exported, entry)["packages"]:
        runtime = [part for one in package["runtimeArguments"] for part in (one["name"], one["value"])]
        fixed = [one["value"] for one in package["packageArguments"] if "value" in one]
        words.append([package["runtimeHint"], *runtime, f"{package['identifier']}@{package['version']}", *fixed])
    name = "mcp-server-bundle"
    assert words == [
        ["uvx", "--with", f"{name}[{extras}]=={VERSION}", f"{name}@{VERSION}", "run", "sqlite"]
        for extras in ("sqlite", "sqlite,http")
    ]


def test_variables_in_a_url_are_declared_by_the_package(exported: Path) -> None:
    package = described(exported, ENTRIES[0])["packages"][1]
    port = next(one for one in package["environmentVariables"] if one["name"] == "MCP_PORT")
    assert package["transport"]["url"].replace("{MCP_PORT}", port["default"]) == "http://127.0.0.1:8000/mcp"


# For desktop hosts


def test_the_user_form_has_the_chosen_options_only(exported: Path) -> None:
    forms = {entry.name: list(manifest_of(exported, entry)["user_config"]) for entry in ENTRIES}
    assert forms == {
        "filesystem": [
            *("roots", "allow_write", "poll", "replace_protected", "no_undo", "undo_dir", "confirm", "client_roots")
        ],
        "sqlite": ["databases", "demo", "allow_write", "attach", "create", "confirm", "files", "queries"],
        "postgres": [
            *("databases", "allow_write", "allow_privileged", "query_tool", "watch_triggers"),
            *("confirm", "files", "queries"),
        ],
        "fetch": ["ignore_robots", "header", "proxy_url", "ca_file"],
        "prompts": ["libraries", "starter", "allow_write", "confirm", "files"],
        "everything": ["confirm"],
    }


@pytest.mark.parametrize(("name", "secret"), [("fetch", "header"), ("postgres", "databases")])
def test_a_secret_is_a_sensitive_variable_and_no_argument(name: str, secret: str, exported: Path) -> None:
    manifest = manifest_of(exported, load_catalog().entry(name))
    sensitive = {key for key, value in manifest["user_config"].items() if "sensitive" in value}
    assert {secret} <= sensitive < manifest["user_config"].keys()
    assert secret not in " ".join(manifest["server"]["mcp_config"]["args"])
    variable = f"MCP_{name}_{secret}".upper()
    assert manifest["server"]["mcp_config"]["env"][variable] == f"${{user_config.{secret}}}"
    for package in described(exported, load_catalog().entry(name))["packages"]:
        assert [one["isSecret"] for one in package["environmentVariables"] if one["name"] == variable] == [True]


def test_the_bundle_requires_the_libraries_of_the_project(exported: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plain = str.maketrans("", "", " ()\"'")
    for entry in ENTRIES:
        bundled = tomllib.loads(opened(exported, entry).read("pyproject.toml").decode())["project"]
        lines = project["dependencies"] + project["optional-dependencies"].get(entry.extra, [])
        assert {one.translate(plain) for one in bundled["dependencies"]} == {one.translate(plain) for one in lines}
        # A host leaves the name of a variable without a value in the command.
        fields = manifest_of(exported, entry)["user_config"]
        assert all(("default" in field) is not field["required"] for field in fields.values())


def test_the_bundle_has_one_server_and_its_imports(exported: Path) -> None:
    beside_it = {"manifest.json", "pyproject.toml", "main.py", "LICENSE", "icon.png"}
    data = {"sqlite": "servers/sqlite/engine/sample.sql", "prompts": "servers/prompts/starter/_shared/material.md"}
    for entry in ENTRIES:
        bundle = opened(exported, entry)
        names = bundle.namelist()
        tops = {"/".join(Path(name).parts[:2]) for name in names if name.startswith("servers/")}
        common = {"servers/common"} if entry.name != "everything" else set()
        assert tops == {"servers/__init__.py", "servers/start.py", f"servers/{entry.name}", *common}
        assert {"shared/protocol/versions.py", "LICENSE", data.get(entry.name, "LICENSE")} <= set(names)
        assert not [name for name in names if "__pycache__" in name]
        assert {name for name in names if "/" not in name} == beside_it
        # The icon is a PNG file: its signature, and the length, name, width and height of its first chunk.
        shown = bundle.read(manifest_of(exported, entry)["icon"])
        assert struct.unpack(">8sI4sII", shown[:24]) == (b"\x89PNG\r\n\x1a\n", 13, b"IHDR", 512, 512)


@pytest.mark.slow
@each
async def test_the_server_in_the_bundle_answers(entry: Entry, exported: Path, tmp_path: Path) -> None:
    opened(exported, entry).extractall(tmp_path / "bundle")
    picked = chosen(entry, tmp_path).values()
    places = [place for one in picked for place in ([one] if isinstance(one, str) else one)]
    async with Wire([sys.executable, "main.py", *places], cwd=tmp_path / "bundle", env=BARE) as server:
        assert (await server.initialize())["serverInfo"]["name"] == entry.name


# For Docker's MCP gateway


def entry_of(exported: Path, name: str) -> dict[str, Any]:
    return yaml.safe_load((exported / name / f"{name}.yaml").read_text())


def test_the_docker_gateway_mounts_only_the_named_paths(exported: Path) -> None:
    server = entry_of(exported, "filesystem")
    assert server["image"] == f"mcp-bundle-filesystem:{VERSION}"
    assert server["volumes"] == ["{{filesystem.roots|volume|into}}", "{{filesystem.undo_dir|volume}}"]
    assert server["command"] == ["{{filesystem.roots|volume-target|into}}"]
    assert server["disableNetwork"] is True
    assert server["config"][0]["required"] == ["roots"]


# The fields of a server of type `server`, and of their contents: https://github.com/docker/mcp-gateway at 2bd20fe,
# docs/server-entry-spec.md and pkg/catalog/types.go. Its programs ignore unknown fields.
FIELDS = {
    "": {"name", "type", "title", "description", "icon", "readme", "image", "command", "volumes", "user", "longLived"}
    | {"secrets", "env", "disableNetwork", "allowHosts", "extraHosts", "tools", "config", "metadata"},
    "secrets": {"name", "env", "example"},
    "env": {"name", "value"},
    "tools": {"name", "description", "arguments", "annotations"},
    "config": {"name", "description", "type", "properties", "required", "anyOf", "oneOf"},
    "properties": {"type", "description", "items", "properties", "required", "default", "enum", "pattern"},
    "metadata": {"category", "tags", "license", "owner"},
}


def test_a_docker_entry_has_only_fields_of_the_gateway(exported: Path) -> None:
    for entry in ENTRIES:
        server = entry_of(exported, entry.name)
        assert (server["name"], server["type"]) == (entry.name, "server")
        assert {"title", "description", "image", "tools"} <= set(server) <= FIELDS[""]
        for field in ("secrets", "env", "tools", "config"):
            assert all(set(one) <= FIELDS[field] for one in server.get(field, []))
        assert set(server["metadata"]) <= FIELDS["metadata"]
        assert ("disableNetwork" in server) is (entry.permissions.network == "none")
        for one in server.get("config", []):
            assert all(set(property_) <= FIELDS["properties"] for property_ in one["properties"].values())
            assert all(property_.get("enum", [""]) for property_ in one["properties"].values())
            assert {"name": entry.name, "type": "object"}.items() <= one.items()
            # The form has exactly the variables that the entry uses.
            values = [*server.get("command", []), *(variable["value"] for variable in server["env"])]
            used = {value.strip("{}").split("|")[0] for value in values}
            assert used == {f"{entry.name}.{name}" for name in one["properties"]}


def test_optional_secrets_are_absent_from_the_docker_entry(exported: Path) -> None:
    # It would start the server with the value `<UNKNOWN>`.
    server = entry_of(exported, "fetch")
    assert "secrets" not in server
    assert {"header", "proxy_url"}.isdisjoint(server["config"][0]["properties"])
