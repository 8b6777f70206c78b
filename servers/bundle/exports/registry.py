"""`server.json`, the description of a server for the MCP registry.

The format: https://github.com/modelcontextprotocol/registry, docs/reference/server-json. The command of a client
consists of the runtime (uvx), its arguments, the name of the package with the version, and the arguments of the
package, in this order (VS Code: https://github.com/microsoft/vscode,
src/vs/platform/mcp/common/mcpManagementService.ts). So uvx starts the program that has the name of the package, and
`--from` can't select another one. The description of a server therefore makes clients run `mcp-server-bundle run
NAME`, and requests the extra of the server with `--with`.

The registry accepts a package only if it claims the name of the server: its README on PyPI must contain a line
`mcp-name: NAMESPACE/SCRIPT` for each server.
"""

import re
from typing import Any

from servers.catalog import PACKAGE, Argument, Entry

from .servers import Package, is_path

NAMESPACE = "internal.mcp-server-bundle"
"""The default namespace. `.internal` is reserved for private use, so no one can own it in the public registry: a
publisher sets their own namespace, such as `io.github.USER`."""

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
RUN_PROGRAM = f"{PACKAGE}.__main__:main"
"""The entry point of the program that has the command `run NAME`."""

_NAMESPACE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)+")
_FORMATS = {
    "boolean": "boolean", "integer": "number", "number": "number", "file": "filepath", "directory": "filepath",
}  # fmt: skip


def describe_server(entry: Entry, package: Package, namespace: str = NAMESPACE) -> dict[str, Any]:
    """Return the content of `server.json`. Raises ValueError if the namespace is not a domain, or if clients could
    not start the server."""
    if _NAMESPACE.fullmatch(namespace) is None or len(namespace) > 100:
        raise ValueError(
            f"{namespace!r} is not a valid namespace: it must be a reversed domain name, such as io.github.USER"
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
    candidates = [entry.extra, "http" if transport == "http" else None]
    extras = ",".join(extra for extra in candidates if extra in package.extras)
    runtime = {"type": "named", "name": "--with", "value": f"{package.name}[{extras}]=={package.version}"}
    words: list[dict[str, Any]] = []
    variables: list[dict[str, Any]] = []
    if entry.script != package.name:
        # The words after the name of the package select this server.
        if package.scripts.get(package.name) != RUN_PROGRAM:
            raise ValueError(
                f"{entry.name}: clients of a registry start {package.name} by its script of that name, which it lacks"
            )
        words = [{"type": "positional", "value": word} for word in ("run", entry.name)]
    for argument in entry.arguments:
        described = _describe_input(argument)
        # Prefer the environment: there, an empty value means the default, a switch can have a value, and other users
        # can't read a secret.
        if argument.environment is not None and (argument.option is not None or argument.secret):
            if argument.repeated:
                described.pop("format", None)  # the value is a string with a list
                separators = "as in PATH" if is_path(argument) else "by commas"
                described["description"] += f"; several are separated {separators}"
            variables.append({"name": argument.environment, **described})
            continue
        if argument.option is None:
            kind = {"type": "positional", "valueHint": argument.name}
        else:
            kind = {"type": "named", "name": argument.option}
        words.append({**kind, **described, **({"isRepeated": True} if argument.repeated else {})})
    return {
        "registryType": "pypi",
        "identifier": package.name,
        "version": package.version,
        "runtimeHint": "uvx",
        **({"runtimeArguments": [runtime]} if extras else {}),
        "packageArguments": words,
        "environmentVariables": variables + _HTTP[transport],
        "transport": _TRANSPORTS[transport],
    }


def _describe_input(argument: Argument) -> dict[str, Any]:
    described: dict[str, Any] = {"description": argument.description}
    if argument.required:
        described["isRequired"] = True
    if argument.type in _FORMATS:
        described["format"] = _FORMATS[argument.type]
    if argument.secret:
        described["isSecret"] = True
    if argument.default is not None:
        default = argument.default if isinstance(argument.default, list) else [argument.default]
        described["default"] = ",".join(
            str(item).lower() if isinstance(item, bool) else str(item) for item in default
        )
    if argument.choices:
        described["choices"] = argument.choices
    if argument.metavar is not None:
        described["placeholder"] = argument.metavar
    return described


# The variables that a client must set for a server so that it can reach the server.
_HTTP: dict[str, list[dict[str, Any]]] = {
    "stdio": [],
    "http": [
        {"name": "MCP_TRANSPORT", "description": "how clients connect", "value": "http"},
        {"name": "MCP_PORT", "description": "port to bind", "format": "number", "default": "8000"},
        {"name": "MCP_TOKEN", "description": "bearer token that every request must carry", "isSecret": True},
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
                "description": "'Bearer ' and the value of MCP_TOKEN, if it is set",
                "isSecret": True,
            }
        ],
    },
}
