"""Information about a server that all exports need: its package, as installed here, and the arguments that a host
asks the user for."""

import json
import re
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, NamedTuple

from servers.catalog import Argument, Entry

# The end of a requirement that belongs to an extra.
_EXTRA = re.compile(r"""\s*(?:;|\band)\s*extra\s*==\s*["']([^"']+)["']\s*$""")


class Package(NamedTuple):
    """The metadata of an installed package that exports need."""

    name: str
    version: str
    author: str
    python: str
    """The supported versions of Python, such as `>=3.11`."""
    extras: list[str]
    requirements: list[str]
    """The packages that the server needs, those of its extra included, as PEP 508 requirements."""
    scripts: dict[str, str]
    """The console scripts of the package: `module:function`, by name."""
    licenses: dict[str, str]
    """The license texts, by file name."""


def package_of(entry: Entry) -> Package:
    """Return the package that has the console script of the server. Raises ValueError if it is missing."""
    if entry.script is None:
        raise ValueError(f"{entry.name}: the catalog has no script for it, and exports need one to find its package")
    script = next(iter(entry_points(group="console_scripts", name=entry.script)), None)
    if script is None or script.dist is None:
        raise ValueError(f"{entry.name}: no package installed here has the console script {entry.script}")
    distribution = script.dist
    texts = {
        name: distribution.read_text(f"licenses/{name}") for name in distribution.metadata.get_all("License-File", [])
    }
    lines = [(_EXTRA.search(line), line) for line in distribution.requires or ()]
    requirements = [_EXTRA.sub("", line) for match, line in lines if match is None or match[1] == entry.extra]
    return Package(
        name=distribution.name,
        version=distribution.version,
        author=distribution.metadata.get_all("Author", [f"The authors of {distribution.name}"])[0],
        python=distribution.metadata.get_all("Requires-Python", [">=3"])[0],
        extras=distribution.metadata.get_all("Provides-Extra", []),
        requirements=requirements,
        scripts={point.name: point.value for point in distribution.entry_points if point.group == "console_scripts"},
        licenses={name.rpartition("/")[2]: text for name, text in texts.items() if text},
    )


def choose_arguments(entry: Entry) -> list[Argument]:
    """Return the arguments that a host asks the user for: paths, switches, secrets, and those that are required."""
    # All others, such as patterns and limits, keep their defaults. A user who needs other values writes the command
    # by hand.
    simple = [
        argument for argument in entry.arguments if argument.secret or argument.type == "boolean" or is_path(argument)
    ]
    # An optional value may be left empty, which is possible only in a variable or in a list at the end of the
    # command.
    may_be_empty = [argument for argument in simple if fills_command(argument) or argument.environment is not None]
    return [argument for argument in entry.arguments if argument.required or argument in may_be_empty]


def fills_command(argument: Argument) -> bool:
    """Return True if the argument becomes part of the command. All others are set in the environment, where an empty
    value means that it is not set, and where other users of the machine can't read a secret."""
    if argument.secret and argument.environment is not None:
        return False
    return argument.required or (argument.option is None and argument.repeated and is_path(argument))


def is_path(argument: Argument) -> bool:
    """Return True if the value of the argument is a file or a directory."""
    return argument.type in ("file", "directory")


def title(argument: Argument) -> str:
    """Return the title of the argument in a form."""
    return argument.name.replace("_", " ").capitalize()


def describe_field(argument: Argument) -> dict[str, Any]:
    """Return the field for an argument in the form of a host, in the format of bundles and plugins. An optional field
    has a default, which may be empty. Raises ValueError if a host would substitute something in the default."""
    default = argument.default
    if not argument.required and isinstance(default, str) and "${" in default:
        raise ValueError(f"a host would substitute something in the default of {argument.name!r}: {default}")
    if argument.type == "boolean":
        default = default is True
    elif not isinstance(default, str):
        default = ""
    return {
        "type": "number" if argument.type == "integer" else argument.type,
        "title": title(argument),
        "description": argument.description[:1].upper() + argument.description[1:],
        "required": argument.required,
        **({"sensitive": True} if argument.secret else {}),
        **({} if argument.required else {"default": default}),
    }


def as_json(document: Mapping[str, Any]) -> bytes:
    """Return the document as the content of an indented JSON file."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
