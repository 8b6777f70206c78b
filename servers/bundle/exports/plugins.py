"""Plugins for Claude Code and Codex, which are also extensions for Gemini CLI.

One folder serves all three hosts. It contains a wheel with the server, which uv runs, the skills of the server, and a
manifest for each host.

* Claude Code (https://code.claude.com/docs/en/plugins-reference) asks for the options of `userConfig`. It refuses to
  start a server with an option that is neither set nor has a default, and does not read MCP bundles of the type `uv`.
* Codex (https://developers.openai.com/codex/plugins/build) asks for nothing. It passes on the variables of its own
  environment that are listed.
* Gemini CLI (https://geminicli.com/docs/extensions/reference) asks for `settings`, which may stay empty.

All three only set environment variables. So a server can have a plugin if each argument that it requires can be set
by a variable. Claude Code and Codex find the plugins in a marketplace file that lists them.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from servers.catalog import Argument, Catalog, Entry

from .servers import Package, as_json, choose_arguments, describe_field, is_path, title
from .sources import ICON, displayed_files, pack_wheel_project, sources_of

MARKETPLACE = ".claude-plugin/marketplace.json"
_CODEX_SERVERS = ".codex-plugin/mcp.json"  # Claude Code would read `.mcp.json`, where Codex documents it
_SKILL = "SKILL.md"


def has_plugin(entry: Entry) -> bool:
    """Return True if each argument that the server requires can be set by an environment variable."""
    return all(argument.environment for argument in entry.arguments if argument.required)


def make_plugin(entry: Entry, package: Package, catalog: Catalog) -> dict[str, bytes]:
    """Return the contents of the plugin's files, by their paths in it. Raises ValueError if a file can't be read."""
    shown, sources = displayed_files(entry, package), sources_of(entry, package, catalog)
    arguments = [argument for argument in choose_arguments(entry) if argument.environment]
    fields = {
        argument.name: describe_field(argument) | {"description": _describe(argument)} for argument in arguments
    }
    filled = {argument.environment: f"${{user_config.{argument.name}}}" for argument in arguments}
    names = [argument.environment for argument in arguments]
    settings = [
        {
            "name": title(argument),
            "description": _describe(argument),
            "envVar": argument.environment,
            **({"sensitive": True} if argument.secret else {}),
        }
        for argument in arguments
    ]
    metadata = {
        "version": entry.version,
        "description": entry.summary,
        "author": {"name": package.author},
        **({"license": entry.license} if entry.license else {}),
    }
    documents: dict[str, dict[str, Any]] = {
        ".claude-plugin/plugin.json": {
            "name": entry.name,
            **metadata,
            "displayName": entry.title,
            "mcpServers": {entry.name: _command(entry, "${CLAUDE_PLUGIN_ROOT}") | {"env": filled}},
            "userConfig": fields,
        },
        ".codex-plugin/plugin.json": {"name": entry.name, **metadata, "mcpServers": f"./{_CODEX_SERVERS}"},
        _CODEX_SERVERS: {"mcpServers": {entry.name: _command(entry, ".") | {"cwd": ".", "env_vars": names}}},
        "gemini-extension.json": {
            "name": entry.script,
            **metadata,
            "mcpServers": {entry.name: _command(entry, "${extensionPath}")},
            **({"settings": settings} if settings else {}),
        },
    }
    return {
        **{name: as_json(document) for name, document in documents.items()},
        "README.md": _readme(entry, arguments).encode(),
        **{f".claude-plugin/{name}" if name == ICON else name: content for name, content in shown.items()},
        **pack_wheel_project(entry, package, sources),
        **_skills(sources),
    }


def make_marketplace(plugins: Sequence[tuple[Entry, Package]]) -> bytes:
    """Return the marketplace file, which lists the plugins. Each is in the folder `NAME/plugin`. The marketplace has
    the name of the package."""
    package = plugins[0][1]
    document = {
        "name": package.name,
        "description": f"The MCP servers of {package.name}",
        "owner": {"name": package.author},
        "plugins": [
            {"name": entry.name, "source": f"./{entry.name}/plugin", "description": entry.summary}
            for entry, _ in plugins
        ],
    }
    return as_json(document)


def _command(entry: Entry, folder: str) -> dict[str, Any]:
    return {"command": "uv", "args": ["run", "--project", folder, entry.script]}


def _describe(argument: Argument) -> str:
    """Return the description of an argument, which also says how to write several values in one variable."""
    several = "; several are separated " + ("as in PATH" if is_path(argument) else "by commas")
    return str(describe_field(argument)["description"]) + (several if argument.repeated else "")


def _readme(entry: Entry, arguments: Sequence[Argument]) -> str:
    settings = "".join(f"* `{argument.environment}`: {_describe(argument)}\n" for argument in arguments)
    return (
        f"# {entry.title}\n\n{entry.description}\n\n"
        "The plugin starts the server with [uv](https://docs.astral.sh/uv), which must be installed. At the first "
        "start, uv downloads the libraries of the server.\n\n"
        + (
            "Claude Code and Gemini CLI ask for the settings. Codex passes these variables of its environment to the "
            f"server:\n\n{settings}"
            if settings
            else "It has no settings.\n"
        )
    )


def _skills(sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of the skills in the sources, by the paths where hosts look for them."""
    paths = {PurePosixPath(name): content for name, content in sources.items()}
    return {
        f"skills/{path.relative_to(folder.parent)}": content
        for folder in [path.parent for path in paths if path.name == _SKILL]
        for path, content in paths.items()
        if path.is_relative_to(folder)
    }
