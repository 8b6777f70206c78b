"""What every form has to know of a server: the package that brings it, as it is installed here, and which arguments
are shown to whoever plugs it in without reading its options.
"""

import re
from importlib.metadata import entry_points
from typing import NamedTuple

from servers.catalog import Argument, Entry

# The last part of a requirement that stands in one extra only.
_EXTRA = re.compile(r"""\s*(?:;|\band)\s*extra\s*==\s*["']([^"']+)["']\s*$""")


class Package(NamedTuple):
    """What exports have to know of an installed package."""

    name: str
    version: str
    author: str
    python: str
    """The versions of Python it runs on, as a specifier."""
    extras: list[str]
    requirements: list[str]
    """The packages that the server needs, those of its extra included (PEP 508)."""
    scripts: dict[str, str]
    """Its console scripts: `module:function` by name."""
    licences: dict[str, str]
    """The texts of its licence, by file name."""


def package_of(entry: Entry) -> Package:
    """The package with the console script of the server. Raises ValueError where the script is not installed."""
    if entry.script is None:
        raise ValueError(f"{entry.name}: the catalog names no script, which exports need to find its package")
    found = next(iter(entry_points(group="console_scripts", name=entry.script)), None)
    if found is None or found.dist is None:
        raise ValueError(f"{entry.name}: no package installed here has the console script {entry.script}")
    brings = found.dist
    texts = {name: brings.read_text(f"licenses/{name}") for name in brings.metadata.get_all("License-File", [])}
    lines = [(_EXTRA.search(line), line) for line in brings.requires or ()]
    requirements = [_EXTRA.sub("", line) for found, line in lines if found is None or found[1] == entry.extra]
    return Package(
        name=brings.name,
        version=brings.version,
        author=brings.metadata.get_all("Author", [f"The authors of {brings.name}"])[0],
        python=brings.metadata.get_all("Requires-Python", [">=3"])[0],
        extras=brings.metadata.get_all("Provides-Extra", []),
        requirements=requirements,
        scripts={one.name: one.value for one in brings.entry_points if one.group == "console_scripts"},
        licences={name.rpartition("/")[2]: text for name, text in texts.items() if text},
    )


def choose_arguments(entry: Entry) -> list[Argument]:
    """What is picked or ticked, what is secret, and what is required.

    Patterns, limits and names keep their defaults: they take typing and reading, and who wants them writes the
    command down by hand. An option without a variable is left out as well, since it can't be given empty.
    """
    simple = [one for one in entry.arguments if one.secret or one.type == "boolean" or is_path(one)]
    may_be_empty = [one for one in simple if fills_command(one) or one.environment is not None]
    return [one for one in entry.arguments if one.required or one in may_be_empty]


def fills_command(argument: Argument) -> bool:
    """Whether it becomes a part of the command; all else is set in the environment, where empty means unset, and
    where others on the machine can't read a secret."""
    if argument.secret and argument.environment is not None:
        return False
    return argument.required or (argument.option is None and argument.repeated and is_path(argument))


def is_path(argument: Argument) -> bool:
    """Whether its value is a file or a directory."""
    return argument.type in ("file", "directory")


def title(argument: Argument) -> str:
    """How a form calls it."""
    return argument.name.replace("_", " ").capitalize()
