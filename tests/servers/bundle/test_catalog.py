"""catalog.yaml says what the servers say."""

import json
import re
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic.fields import FieldInfo

from servers.bundle.catalog import CATALOG, Argument, Entry, catalog_schema, load_catalog
from servers.bundle.program import main
from shared.auth.policy import Policy
from shared.program.options import flag_of, variable_of
from tests.postgres_server import any_database
from tests.wire import Wire

SCHEMA = CATALOG.parent / "servers" / "bundle" / "catalog.schema.json"
TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}

ENTRIES = load_catalog().servers
WRITERS = [entry for entry in ENTRIES if entry.tools.write]
each = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
each_writer = pytest.mark.parametrize("entry", WRITERS, ids=lambda entry: entry.name)


def start(entry: Entry, folder: Path, *options: str) -> Wire:
    """Starts the server with `folder`, or a database in it or elsewhere, for each argument that has no name."""
    (folder / "data.db").touch()
    named = {"DIR": lambda: folder, "DATABASE": lambda: folder / "data.db", "URL": any_database}
    places = [str(named[argument.metavar or ""]()) for argument in entry.arguments if argument.option is None]
    return Wire([sys.executable, "-m", entry.module, *options, *places])


@each
async def test_the_tools_are_those_of_the_running_server(entry: Entry, tmp_path: Path) -> None:
    async with start(entry, tmp_path) as server:
        await server.initialize()
        answer = await server.request("tools/list")
    assert [tool["name"] for tool in answer["result"]["tools"]] == entry.tools.read


@each_writer
async def test_writing_tools_appear_when_writing_is_allowed(entry: Entry, tmp_path: Path) -> None:
    # Some need a directory for files besides.
    files = [part for one in entry.arguments if one.name == "files" for part in ("--files", str(tmp_path))]
    async with start(entry, tmp_path, "--allow-write", *files) as server:
        await server.initialize()
        answer = await server.request("tools/list")
    assert [tool["name"] for tool in answer["result"]["tools"]] == entry.tools.read + entry.tools.write


@each
def test_info_says_which_scopes_are_needed(entry: Entry, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", entry.name]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for scope, tools in entry.scopes.items():
        also = ", as resources and prompts do" if scope.endswith(":read") else ""
        assert f"Tools that need the scope {scope}{also} {', '.join(tools)}" in told


@each
def test_the_scopes_are_those_that_the_running_server_asks_for(entry: Entry) -> None:
    options = {tool.name: tool.options for tool in import_module(f"{entry.module}.server").app.tools.all()}
    needed = {
        name: Policy(entry.name).of_tool(name, options[name]) for name in (*entry.tools.read, *entry.tools.write)
    }
    listed = {name: {scope for scope, tools in entry.scopes.items() if name in tools} for name in needed}
    assert listed == needed


@each
async def test_the_templates_are_those_of_the_running_server(entry: Entry, tmp_path: Path) -> None:
    async with start(entry, tmp_path) as server:
        await server.initialize()
        answer = await server.request("resources/templates/list")
    if entry.resource_templates:
        listed = [template["uriTemplate"] for template in answer["result"]["resourceTemplates"]]
        assert listed == entry.resource_templates
    else:
        assert answer["error"]["code"] == -32601


@each
async def test_the_prompts_are_those_of_the_running_server(entry: Entry, tmp_path: Path) -> None:
    starter = ["--starter"] if any(one.name == "starter" for one in entry.arguments) else []
    async with start(entry, tmp_path, *starter) as server:
        await server.initialize()
        answer = await server.request("prompts/list")
    if entry.prompts:
        assert [prompt["name"] for prompt in answer["result"]["prompts"]] == entry.prompts
    else:
        assert answer["error"]["code"] == -32601


@each
async def test_title_name_and_version_are_those_of_the_running_server(entry: Entry, tmp_path: Path) -> None:
    async with start(entry, tmp_path) as server:
        answer = await server.initialize()
    info = answer["serverInfo"]
    assert (info["name"], info["title"], info["version"]) == (entry.name, entry.title, entry.version)


@each
def test_the_console_script_starts_the_module(entry: Entry) -> None:
    (script,) = entry_points(group="console_scripts", name=entry.script)
    assert script.value == f"{entry.module}.__main__:main"


def argument_of(name: str, field: FieldInfo, prefix: str) -> Argument:
    """What a catalog says of a field of the settings."""
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    metavar = extra.get("positional") or extra.get("metavar")
    kind = next(kind for kind in get_args(field.annotation) or (field.annotation,) if kind is not type(None))
    path = "directory" if metavar == "DIR" else "file"
    return Argument(
        name=name,
        type=path if kind is Path else TYPES.get(kind, "string"),
        description=field.description,
        metavar=metavar,
        option=None if "positional" in extra else flag_of(name),
        environment=variable_of(name, prefix),
        repeated=get_origin(field.annotation) is list,
        required=extra.get("required", False),
        default=None if field.default == [] else field.default,
        choices=list(get_args(field.annotation)) if get_origin(field.annotation) is Literal else [],
        secret=not field.repr,
    )


def scalar(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, width=1_000)
    return text.removesuffix("\n").removesuffix("\n...")


def written(argument: Argument) -> str:
    """An argument as it stands in catalog.yaml."""
    said = {
        key: value for key, value in argument.model_dump().items() if value not in (None, []) and value is not False
    }
    if argument.type == "boolean":
        said["default"] = argument.default
    lines = [f"{key}: {scalar(value)}\n" for key, value in said.items()]
    return "      - " + "        ".join(lines)


@each
def test_the_arguments_are_the_fields_of_the_settings(entry: Entry, request: pytest.FixtureRequest) -> None:
    """`pytest --update-catalog` writes them into catalog.yaml."""
    fields = import_module(f"{entry.module}.server").app.settings_model.model_fields
    arguments = [argument_of(name, field, f"MCP_{entry.name}") for name, field in fields.items()]
    text = CATALOG.read_text()
    if arguments and request.config.getoption("--update-catalog"):
        block = re.compile(rf"(?s)(^  - name: {entry.name}\n.*?^    arguments:\n).*?(?=^    \w)", re.MULTILINE)
        CATALOG.write_text(block.sub(lambda found: found[1] + "".join(map(written, arguments)), text, count=1))
    else:
        assert entry.arguments == arguments
        assert "".join(map(written, arguments)) in text


@each
def test_what_is_asked_for_are_arguments_of_the_server(entry: Entry) -> None:
    asked = entry.permissions
    assert set(asked.paths) <= {argument.name for argument in entry.arguments}
    assert asked.writing in {None, *(argument.option for argument in entry.arguments)}
    assert (asked.writing is None) == (not entry.tools.write)


@each
def test_what_it_refers_to_is_there(entry: Entry) -> None:
    for path in (entry.documentation, entry.icon):
        assert path is not None
        assert (CATALOG.parent / path).is_file()


@each
async def test_the_resources_are_there_in_the_running_server(entry: Entry, tmp_path: Path) -> None:
    async with start(entry, tmp_path) as server:
        await server.initialize()
        answer = await server.request("resources/list")
    listed = [resource["uri"] for resource in answer["result"]["resources"]] if "result" in answer else []
    assert set(entry.resources) <= set(listed)


def test_the_schema_is_that_of_the_models() -> None:
    assert json.loads(SCHEMA.read_text()) == catalog_schema()


def test_the_catalog_keeps_its_schema() -> None:
    Draft202012Validator(catalog_schema()).validate(yaml.safe_load(CATALOG.read_text()))


ENTRY = {
    "name": "dice", "title": "Dice", "version": "1", "summary": "Rolls.", "description": "Rolls dice.",
    "category": "testing", "module": "dice.server", "transports": ["stdio"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": "--help"}, "servers.0.name"),
        ({"module": "os; rm"}, "servers.0.module"),
        ({"script": "../../bin/sh"}, "servers.0.script"),
        ({"summary": "two\nlines"}, "servers.0.summary"),
        ({"transports": []}, "servers.0.transports"),
        ({"colour": "red"}, "servers.0.colour"),
    ],
)
def test_what_is_no_entry_is_refused_by_its_place(change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(yaml.safe_dump({"servers": [{**ENTRY, **change}]}))
    with pytest.raises(ValueError, match=reason):
        load_catalog(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"servers: [", "is not YAML"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        (b"[" * 100_000, "nested more than 20 levels deep"),
        (b"servers: !!bool x", "it has a tag"),
        (b"servers: {}\nservers: []", "line 2: the key 'servers' is given twice"),
        (b"- a list", "valid dictionary"),
        (b" " * 1_000_001, "at most 1000000 bytes"),
        (b"servers:\n" + b"- x\n" * 20_000, "it has more than 20,000 values"),
        (b"servers: [&a {name: x}" + b",*a" * 10_000 + b"]", "it has more than 20,000 values"),
        (b"servers: 2001-99-99", "servers: Input should be a valid list"),
    ],
    ids=["unclosed", "binary", "deep", "value", "twice", "list", "large", "long", "aliases", "no day"],
)
def test_what_is_no_catalog_is_refused_in_one_line(text: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=reason) as refused:
        load_catalog(path)
    assert "\n" not in str(refused.value)


def test_two_servers_may_not_have_one_name(tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(yaml.safe_dump({"servers": [ENTRY, ENTRY]}))
    with pytest.raises(ValueError, match="two servers are called 'dice'"):
        load_catalog(path)


def test_every_server_stands_in_the_catalog() -> None:
    folders = {path.parent.name for path in (CATALOG.parent / "servers").glob("*/__main__.py")}
    assert folders == {entry.name for entry in ENTRIES}
