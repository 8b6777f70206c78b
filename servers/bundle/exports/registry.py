"""`server.json`, by which the MCP registry knows a server.

The form: https://github.com/modelcontextprotocol/registry, docs/reference/server-json. A client puts the runtime, its
arguments, the package's name with the version, and the package's arguments together, in this order (VS Code:
https://github.com/microsoft/vscode, src/vs/platform/mcp/common/mcpManagementService.ts). So the program it starts is
the one that is called as the package, and `--from` can't name another. A server of the bundle is therefore
`mcp-server-bundle run NAME`, and its extra comes by uvx's `--with`.

A registry lists a package only under a name which the package claims: its README on PyPI has to hold a line
`mcp-name: NAMESPACE/SCRIPT` for each server.
"""

import re
from typing import Any

from servers.catalog import PACKAGE, Argument, Entry

from .servers import Package, is_path

NAMESPACE = "internal.mcp-server-bundle"
"""Where no other is given. `.internal` is kept for private use, so nobody can own it in the public registry: who
publishes gives the namespace that is his, such as `io.github.USER`."""

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
COMMANDS = f"{PACKAGE}.__main__:main"
"""The program that takes `run NAME`."""

_NAMESPACE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)+")
_FORMATS = {
    "boolean": "boolean", "integer": "number", "number": "number", "file": "filepath", "directory": "filepath",
}  # fmt: skip


def describe_server(entry: Entry, package: Package, namespace: str = NAMESPACE) -> dict[str, Any]:
    """The document. Raises ValueError where the namespace is no domain, or clients could not start the package."""
    if _NAMESPACE.fullmatch(namespace) is None or len(namespace) > 100:
        raise ValueError(
            f"{namespace!r} is not a valid namespace: it is a domain in reverse order, such as io.github.USER"
        )
    return {
        "$schema": SCHEMA,
        "name": f"{namespace}/{entry.script}",
        "title": entry.title,
        "description": entry.summary,
        "version": entry.version,
        "packages": [_package(entry, package, transport) for transport in entry.transports],
    }


def _package(entry: Entry, package: Package, transport: str) -> dict[str, Any]:
    wanted = [entry.extra, "http" if transport == "http" else None]
    extras = ",".join(extra for extra in wanted if extra in package.extras)
    runtime = {"type": "named", "name": "--with", "value": f"{package.name}[{extras}]=={package.version}"}
    words: list[dict[str, Any]] = []
    if entry.script != package.name:
        # What follows the name of the package, to start this server and no other.
        if package.scripts.get(package.name) != COMMANDS:
            raise ValueError(f"{entry.name}: clients of a registry start {package.name} by a script of that name")
        words = [{"type": "positional", "value": word} for word in ("run", entry.name)]
    return {
        "registryType": "pypi",
        "identifier": package.name,
        "version": package.version,
        "runtimeHint": "uvx",
        **({"runtimeArguments": [runtime]} if extras else {}),
        "packageArguments": words + [_argument(one) for one in entry.arguments if not _is_variable(one)],
        "environmentVariables": [_variable(one) for one in entry.arguments if _is_variable(one)] + _HTTP[transport],
        "transport": _TRANSPORTS[transport],
    }


def _is_variable(argument: Argument) -> bool:
    """Whether it is best set in the environment: there a switch has a value, nothing means the default, and others
    can't read a secret."""
    return argument.environment is not None and (argument.option is not None or argument.secret)


def _argument(argument: Argument) -> dict[str, Any]:
    repeated = {"isRepeated": True} if argument.repeated else {}
    if argument.option is None:
        return {"type": "positional", "valueHint": argument.name, **_input(argument), **repeated}
    return {"type": "named", "name": argument.option, **_input(argument), **repeated}


def _variable(argument: Argument) -> dict[str, Any]:
    found = _input(argument)
    if argument.repeated:
        found.pop("format", None)  # it is a list, as text
        found["description"] += "; several are separated " + ("as in PATH" if is_path(argument) else "by commas")
    return {"name": argument.environment, **found}


def _input(argument: Argument) -> dict[str, Any]:
    found: dict[str, Any] = {"description": argument.description}
    if argument.required:
        found["isRequired"] = True
    if argument.type in _FORMATS:
        found["format"] = _FORMATS[argument.type]
    if argument.secret:
        found["isSecret"] = True
    if argument.default is not None:
        default = argument.default if isinstance(argument.default, list) else [argument.default]
        found["default"] = ",".join(str(one).lower() if isinstance(one, bool) else str(one) for one in default)
    if argument.choices:
        found["choices"] = argument.choices
    if argument.metavar is not None:
        found["placeholder"] = argument.metavar
    return found


# The options of every server, as far as a client has to set them to reach it.
_HTTP: dict[str, list[dict[str, Any]]] = {
    "stdio": [],
    "http": [
        {"name": "MCP_TRANSPORT", "description": "how clients connect", "value": "http"},
        {"name": "MCP_PORT", "description": "port to bind", "format": "number", "default": "8000"},
        {"name": "MCP_TOKEN", "description": "what every request must carry as a bearer token", "isSecret": True},
    ],
}
_TRANSPORTS: dict[str, dict[str, Any]] = {
    "stdio": {"type": "stdio"},
    "http": {
        "type": "streamable-http",
        "url": "http://127.0.0.1:{MCP_PORT}/mcp",
        "headers": [
            {
                "name": "Authorization",
                "description": "'Bearer ' and the value of MCP_TOKEN, where that is set",
                "isSecret": True,
            }
        ],
    },
}
