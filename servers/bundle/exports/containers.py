"""Server entries for Docker's MCP gateway, which starts servers from container images.

The format: https://github.com/docker/mcp-gateway, docs/server-entry-spec.md and pkg/catalog/types.go; the templates:
pkg/eval. Such an entry is added to a profile or catalog of the gateway with `--server file://NAME.yaml`. (The older
catalogs in a single file with a `registry` are "legacy".) The gateway mounts a path at the same place in the
container, read-only unless its operator allows more. If the user leaves a value empty, the gateway does not set the
variable, but an argument of the command becomes an empty word. So the command contains only required values. If a
secret is missing, the gateway sets it to `<UNKNOWN>`, or does not start the server. So only required secrets are
listed.
"""

from typing import Any

import yaml

from servers.catalog import Argument, Entry

from .servers import choose_arguments, is_path


def describe_container(entry: Entry) -> str:
    """Return the entry of a server that has an image, as YAML."""
    arguments = [argument for argument in choose_arguments(entry) if not argument.secret]
    command = [argument for argument in arguments if argument.required]
    variables = [argument for argument in arguments if not argument.required and argument.environment]
    secrets = [
        {
            "name": f"{entry.name}.{argument.name}",
            "env": argument.environment,
            "example": argument.metavar or f"your_{argument.name}",
        }
        for argument in entry.arguments
        if argument.secret and argument.required and argument.environment
    ]
    words = [
        word
        for argument in command
        for word in (*([argument.option] if argument.option else []), _template(entry, argument, _role(argument)))
    ]
    paths = [_template(entry, argument, "volume") for argument in arguments if is_path(argument)]
    links = {"icon": entry.icon, "readme": entry.documentation}
    server: dict[str, Any] = {
        "name": entry.name,
        "title": entry.title,
        "type": "server",
        "description": entry.summary,
        **{key: link for key, link in links.items() if link and "://" in link},
        "image": f"{entry.image}:{entry.version}",
        # Keep the container running between calls, since a session contains subscriptions and other state.
        "longLived": True,
        "secrets": secrets,
        "env": [
            {"name": argument.environment, "value": _template(entry, argument, _role(argument))}
            for argument in variables
        ],
        "command": words,
        "volumes": paths,
        "disableNetwork": entry.permissions.network == "none",
        "tools": [{"name": name} for name in entry.tools.read + entry.tools.write],
        "config": [_config(entry, command + variables)] if command or variables else [],
        "metadata": {"category": entry.category, **({"license": entry.license} if entry.license else {})},
    }
    return yaml.safe_dump(
        {key: value for key, value in server.items() if value not in ([], False)},
        sort_keys=False,
        allow_unicode=True,
        width=120,
    )


def _role(argument: Argument) -> str:
    return "volume-target" if is_path(argument) else ""


def _template(entry: Entry, argument: Argument, role: str) -> str:
    """Return the template that the gateway replaces with the user's value of the argument. `role` is a filter of the
    template, or empty."""
    several = "into" if _is_list(argument) else ""
    return "{{" + "|".join(filter(None, [f"{entry.name}.{argument.name}", role, several])) + "}}"


def _is_list(argument: Argument) -> bool:
    return argument.repeated and argument.required and argument.option is None


def _config(entry: Entry, arguments: list[Argument]) -> dict[str, Any]:
    required = [argument.name for argument in arguments if argument.required]
    kinds = {"integer": "number", "number": "number", "boolean": "boolean"}
    properties: dict[str, Any] = {}
    for argument in arguments:
        simple = {"type": kinds.get(argument.type, "string")}
        properties[argument.name] = {"type": "array", "items": simple} if _is_list(argument) else simple
        properties[argument.name] |= {
            "description": argument.description,
            **({"enum": argument.choices} if argument.choices else {}),
        }
    return {
        "name": entry.name,
        "description": f"What {entry.title} may use",
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
    }
