"""MCPB bundles, which a desktop host installs with a click.

The bundles have the type `uv` (manifest 0.4, https://github.com/modelcontextprotocol/mcpb). Such a bundle contains
the sources of one server, and a pyproject.toml with its requirements. The uv of the host creates the environment on
the user's machine, for its system and processor. Claude Code 2.1.332 refuses this type; for it, there are plugins
(`plugins.py`). It accepts the type `python`, but that would need uv on the PATH of desktop hosts, many of which lack
it.

If the user leaves a value without a default empty, the command contains the literal `${user_config.NAME}`. So an
optional value has an empty default, and is set in the environment, where an empty value means that it is not set.

The manifest can't list prompts, since it requires the text of each, which the server renders on request. It lists the
tools that need no permission. The icon must be a PNG file in the bundle; any other icon is omitted.
"""

import re
from typing import Any

from servers.catalog import Argument, Catalog, Entry

from .servers import Package, as_json, choose_arguments, describe_field, fills_command, is_path
from .sources import ICON, MAIN, displayed_files, make_zip, pack_project, sources_of

_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,99}")


def bundle_name(entry: Entry) -> str:
    """Return the file name of the bundle. Raises ValueError if the version can't be part of it."""
    if _VERSION.fullmatch(entry.version) is None:
        raise ValueError(f"{entry.name}: the version {entry.version!r} can't be part of a file name")
    return f"{entry.name}-{entry.version}.mcpb"


def make_bundle(entry: Entry, package: Package, catalog: Catalog) -> bytes:
    """Return the bundle, a ZIP file. The same sources give the same bytes. Raises ValueError if a file can't be
    read."""
    shown = displayed_files(entry, package)
    manifest = make_manifest(entry, package) | ({"icon": ICON} if ICON in shown else {})
    packed = pack_project(entry, package, sources_of(entry, package, catalog))
    return make_zip({"manifest.json": as_json(manifest), **shown, **packed})


def make_manifest(entry: Entry, package: Package) -> dict[str, Any]:
    """Return the manifest, without the icon. Raises ValueError if a host would substitute something in a default."""
    arguments = choose_arguments(entry)
    filling = [argument for argument in arguments if fills_command(argument)]
    command = [
        part
        for argument in filling
        for part in (*([argument.option] if argument.option else []), _placeholder(argument))
    ]
    variables = {
        argument.environment: _placeholder(argument)
        for argument in arguments
        if argument.environment and not fills_command(argument)
    }
    fields = {argument.name: describe_field(argument) for argument in arguments}
    for argument in filling:
        if argument.repeated and is_path(argument):
            fields[argument.name] |= {"multiple": True} | ({} if argument.required else {"default": []})
    return {
        "manifest_version": "0.4",
        "name": entry.script,
        "display_name": entry.title,
        "version": entry.version,
        "description": entry.summary,
        "long_description": entry.description,
        "author": {"name": package.author},
        "server": {
            "type": "uv",
            "entry_point": MAIN,
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", MAIN, *command],
                "env": variables,
            },
        },
        "tools": [{"name": name} for name in entry.tools.read],
        "tools_generated": bool(entry.tools.write),
        "prompts_generated": bool(entry.prompts),
        "keywords": ["mcp", entry.category],
        **({"license": entry.license} if entry.license else {}),
        "compatibility": {"runtimes": {"python": package.python}},
        "user_config": fields,
    }


def _placeholder(argument: Argument) -> str:
    return f"${{user_config.{argument.name}}}"
