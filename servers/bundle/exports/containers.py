"""A server entry of Docker's MCP gateway, which starts servers from container images.

The form: https://github.com/docker/mcp-gateway, docs/server-entry-spec.md and pkg/catalog/types.go; the templates:
pkg/eval. Its profiles and catalogs take such an entry by `--server file://NAME.yaml`; the catalogs of one file with a
`registry`, which came before, it calls legacy. The gateway mounts a path at the same place in the container,
read-only unless its operator allows more. What is left empty it puts into no variable, but into a command as an empty
word; so only what is required stands in the command. A secret that is missing it sets to `<UNKNOWN>`, or does not
start the server; so only those are named that are required.
"""

from typing import Any

import yaml

from servers.catalog import Argument, Entry

from .servers import choose_arguments, is_path


def describe_container(entry: Entry) -> str:
    """The entry as YAML, of a server that has an image."""
    return yaml.safe_dump(_server(entry), sort_keys=False, allow_unicode=True, width=120)


def _server(entry: Entry) -> dict[str, Any]:
    arguments = [one for one in choose_arguments(entry) if not one.secret]
    command = [one for one in arguments if one.required]
    variables = [one for one in arguments if not one.required and one.environment]
    secrets = [
        {
            "name": f"{entry.name}.{one.name}",
            "env": one.environment,
            "example": one.metavar or f"your_{one.name}",
        }
        for one in entry.arguments
        if one.secret and one.required and one.environment
    ]
    words = [
        word for one in command for word in (*([one.option] if one.option else []), _template(entry, one, _role(one)))
    ]
    paths = [_template(entry, one, "volume") for one in arguments if is_path(one)]
    links = {"icon": entry.icon, "readme": entry.documentation}
    server: dict[str, Any] = {
        "name": entry.name,
        "title": entry.title,
        "type": "server",
        "description": entry.summary,
        **{key: link for key, link in links.items() if link and "://" in link},
        "image": f"{entry.image}:{entry.version}",
        # A session holds what a client has subscribed to, and more: it has to outlive a call.
        "longLived": True,
        "secrets": secrets,
        "env": [{"name": one.environment, "value": _template(entry, one, _role(one))} for one in variables],
        "command": words,
        "volumes": paths,
        "disableNetwork": entry.permissions.network == "none",
        "tools": [{"name": name} for name in entry.tools.read + entry.tools.write],
        "config": [_config(entry, command + variables)] if command or variables else [],
        "metadata": {"category": entry.category, **({"license": entry.licence} if entry.licence else {})},
    }
    return {key: value for key, value in server.items() if value not in ([], False)}


def _role(argument: Argument) -> str:
    return "volume-target" if is_path(argument) else ""


def _template(entry: Entry, argument: Argument, role: str) -> str:
    """What the gateway puts the user's value in place of: each of several, where there may be several."""
    several = "into" if _is_list(argument) else ""
    return "{{" + "|".join(filter(None, [f"{entry.name}.{argument.name}", role, several])) + "}}"


def _is_list(argument: Argument) -> bool:
    return argument.repeated and argument.required and argument.option is None


def _config(entry: Entry, arguments: list[Argument]) -> dict[str, Any]:
    required = [one.name for one in arguments if one.required]
    kinds = {"integer": "number", "number": "number", "boolean": "boolean"}
    properties: dict[str, Any] = {}
    for one in arguments:
        simple = {"type": kinds.get(one.type, "string")}
        properties[one.name] = {"type": "array", "items": simple} if _is_list(one) else simple
        properties[one.name] |= {"description": one.description, **({"enum": one.choices} if one.choices else {})}
    return {
        "name": entry.name,
        "description": f"What {entry.title} may use",
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
    }
