"""catalog.yaml agrees with the servers."""

import json
import re
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic.fields import FieldInfo

from servers.catalog import CATALOG, Argument, Entry, catalog_schema, load_catalog
from shared.auth.policy import Policy
from shared.client.client import Client
from shared.program.settings.options import flag_of, variable_of
from shared.server.server import Server
from shared.testing import connected
from tests.postgres_server import any_database
from tests.servers.bundle.commands.test_info import DICE

SCHEMA = CATALOG.parent / "servers" / "catalog.schema.json"
TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}

ENTRIES = load_catalog().servers
each_that_runs = pytest.mark.parametrize(
    "entry",
    # A database server takes seconds to start.
    [pytest.param(one, marks=[pytest.mark.slow] if one.name == "postgres" else [], id=one.name) for one in ENTRIES],
)


def app_of(entry: Entry) -> Server[Any]:
    app: Server[Any] = import_module(f"{entry.module}.server").app
    return app


def settings_of(entry: Entry, folder: Path, **more: Any) -> Any:
    """Returns settings with `folder`, or a database in it or elsewhere, for each positional argument."""
    (folder / "data.db").touch()
    named = {"DIR": lambda: folder, "DATABASE": lambda: folder / "data.db", "URL": any_database}
    places = {one.name: [named[one.metavar or ""]()] for one in entry.arguments if one.option is None}
    known = {one.name: one for one in entry.arguments}
    given = {name: [value] if known[name].repeated else value for name, value in more.items() if name in known}
    return app_of(entry).settings_model(**places, **given)


@each_that_runs
async def test_the_catalog_lists_the_features_of_the_running_server(entry: Entry, tmp_path: Path) -> None:
    async with connected(app_of(entry), settings_of(entry, tmp_path, starter=True)) as end, Client(end) as client:
        info, capabilities = client.server.info, client.server.capabilities
        tools = [tool.name for tool in await client.list_tools()]
        prompts = [prompt.name for prompt in await client.list_prompts()] if "prompts" in capabilities else []
        uris, templates = [], []
        if "resources" in capabilities:
            uris = [resource.uri for resource in await client.list_resources()]
            templates = [one.uri_template for one in await client.list_resource_templates()]
    assert (info["name"], info["title"], info["version"]) == (entry.name, entry.title, entry.version)
    assert (tools, prompts, templates) == (entry.tools.read, entry.prompts, entry.resource_templates)
    assert set(entry.resources) <= set(uris)


@each_that_runs
async def test_writing_tools_appear_when_writing_is_allowed(entry: Entry, tmp_path: Path) -> None:
    # Some servers also need a directory for files.
    settings = settings_of(entry, tmp_path, allow_write=True, files=tmp_path)
    async with connected(app_of(entry), settings) as end, Client(end) as client:
        assert [tool.name for tool in await client.list_tools()] == entry.tools.read + entry.tools.write


def test_the_scopes_are_those_required_by_the_tools() -> None:
    for entry in ENTRIES:
        options = {tool.name: tool.options for tool in app_of(entry).tools.all()}
        names = (*entry.tools.read, *entry.tools.write)
        needed = {name: Policy(entry.name).scopes_of_tool(name, options[name]) for name in names}
        assert needed == {name: {scope for scope, tools in entry.scopes.items() if name in tools} for name in needed}


def argument_of(name: str, field: FieldInfo, prefix: str) -> Argument:
    """Returns the catalog entry for a field of the settings."""
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
    """Returns an argument as in catalog.yaml."""
    fields = {
        key: value for key, value in argument.model_dump().items() if value not in (None, []) and value is not False
    }
    if argument.type == "boolean":
        fields["default"] = argument.default
    lines = [f"{key}: {scalar(value)}\n" for key, value in fields.items()]
    return "      - " + "        ".join(lines)


def test_the_arguments_are_the_fields_of_the_settings(request: pytest.FixtureRequest) -> None:
    """`pytest --update-catalog` writes them into catalog.yaml."""
    for entry in ENTRIES:
        fields = app_of(entry).settings_model.model_fields
        arguments = [argument_of(name, field, f"MCP_{entry.name}") for name, field in fields.items()]
        text = CATALOG.read_text()
        if arguments and request.config.getoption("--update-catalog"):
            block = re.compile(
                rf"(?s)(^  - name: {entry.name}\n.*?^    arguments:)[^\n]*\n.*?(?=^    \w)", re.MULTILINE
            )
            filled = "\n" + "".join(map(written, arguments))
            CATALOG.write_text(block.sub(lambda found: found[1] + filled, text, count=1))  # noqa: B023
        else:
            assert entry.arguments == arguments
            assert "".join(map(written, arguments)) in text


def test_scripts_arguments_and_files_of_an_entry_exist() -> None:
    for entry in ENTRIES:
        (script,) = entry_points(group="console_scripts", name=entry.script)
        assert script.value == f"{entry.module}.__main__:main"
        permissions = entry.permissions
        assert set(permissions.paths) <= {argument.name for argument in entry.arguments}
        assert permissions.writing in {None, *(argument.option for argument in entry.arguments)}
        assert (permissions.writing is None) == (not entry.tools.write)
        for path in (entry.documentation, entry.icon):
            assert path is not None
            assert (CATALOG.parent / path).is_file()
    folders = {path.parent.name for path in (CATALOG.parent / "servers").glob("*/__main__.py")}
    # The gateway has no tools itself: it serves those that are listed.
    assert folders - {"gateway"} == {entry.name for entry in ENTRIES}


def test_the_catalog_conforms_to_the_generated_schema() -> None:
    assert json.loads(SCHEMA.read_text()) == catalog_schema()
    Draft202012Validator(catalog_schema()).validate(yaml.safe_load(CATALOG.read_text()))


def entries(*changes: dict[str, Any]) -> bytes:
    return yaml.safe_dump({"servers": [{**DICE, **change} for change in changes]}).encode()


NO_CATALOGS = [
    (b"servers: [", "is not YAML"),
    (b"\xff\xfe\x00", "is not valid UTF-8"),
    (b"[" * 100_000, "nested more than 20 levels deep"),
    (b"servers: !!bool x", "it has a tag"),
    (b"servers: {}\nservers: []", "line 2: the key 'servers' is given twice"),
    (b"- a list", "write a table of names and values"),
    (b" " * 1_000_001, "at most 1000000 bytes"),
    (b"servers:\n" + b"- x\n" * 20_000, "it has more than 20,000 values"),
    (b"servers: [&a {name: x}" + b",*a" * 10_000 + b"]", "it has more than 20,000 values"),
    (b"servers: 2001-99-99", "servers: write a list, such as"),
    (entries({"name": "--help"}), "servers.1.name"),
    (entries({"module": "os; rm"}), "servers.dice.module"),
    (entries({"script": "../../bin/sh"}), "servers.dice.script"),
    (entries({"summary": "two\nlines"}), "servers.dice.summary"),
    (entries({"transports": []}), "servers.dice.transports"),
    (entries({"version": 1.0}), "servers.dice.version: write a string, in quotes if it looks like a number"),
    (entries({"colour": "red"}), "servers.dice.colour: there is no such field"),
    (entries({}, {}), "two servers are named 'dice'"),
]


def test_an_invalid_catalog_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    for text, reason in NO_CATALOGS:
        path.write_bytes(text)
        with pytest.raises(ValueError, match=reason) as refused:
            load_catalog(path)
        assert "\n" not in str(refused.value)
