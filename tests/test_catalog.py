"""catalog.yaml says what the servers say."""

import argparse
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from servers.catalog import CATALOG, Entry, load_catalog
from shared.options import add_options
from tests.wire import Wire

ENTRIES = load_catalog().servers
WRITERS = [entry for entry in ENTRIES if entry.tools.write]
each = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
each_writer = pytest.mark.parametrize("entry", WRITERS, ids=lambda entry: entry.name)


def start(entry: Entry, folder: Path, *options: str) -> Wire:
    """Starts the server with `folder`, or a database in it, for each argument that has no name."""
    (folder / "data.db").touch()
    named = {"DIR": folder, "DATABASE": folder / "data.db"}
    places = [str(named[argument.metavar or ""]) for argument in entry.arguments if argument.option is None]
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
async def test_title_and_name_are_those_of_the_running_server(entry: Entry, tmp_path: Path) -> None:
    async with start(entry, tmp_path) as server:
        answer = await server.initialize()
    info = answer["serverInfo"]
    assert (info["name"], info["title"]) == (entry.name, entry.title)


@each
def test_the_console_script_starts_the_module(entry: Entry) -> None:
    (script,) = entry_points(group="console_scripts", name=entry.script)
    assert script.value == f"{entry.module}.__main__:main"


@each
def test_the_arguments_are_the_fields_of_the_settings(entry: Entry) -> None:
    model = import_module(f"{entry.module}.server").app.settings_model
    parser = argparse.ArgumentParser()
    add_options(parser, model, entry.name, f"MCP_{entry.name}")
    assert [argument.name for argument in entry.arguments] == list(model.model_fields)
    flags = {flag for action in parser._actions for flag in action.option_strings}
    assert {argument.option for argument in entry.arguments if argument.option} <= flags


def test_every_server_stands_in_the_catalog() -> None:
    folders = {path.parent.name for path in (CATALOG.parent / "servers").glob("*/__main__.py")}
    assert folders == {entry.name for entry in ENTRIES}
