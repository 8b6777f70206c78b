"""MCPB bundles, which a desktop host installs with a click.

A bundle is of the type `uv` (manifest 0.4, https://github.com/modelcontextprotocol/mcpb): it contains the sources of
one server and a pyproject.toml with its requirements, and the host's uv creates the environment on the user's
machine, for its system and processor. A value that the user has left empty stays in the command as the literal
`${user_config.NAME}`, unless it has a default; so an optional value has an empty default, and is set in the
environment, where empty means unset.

Prompts can't be listed, since the manifest requires the text of each, and ours is rendered on request. The tools
listed are those that need no permission. The icon must be a PNG file in the bundle; any other is left out.
"""

import io
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from servers import catalog as catalogs
from servers.catalog import Argument, Catalog, Entry
from shared import version

from .servers import Package, choose_arguments, fills_command, is_path, title

_MAIN = '''"""Starts the server."""

import runpy

runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
'''
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,99}")
_ICON = "icon.png"
_PNG = b"\x89PNG\r\n\x1a\n"
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # a ZIP file can't contain an earlier time
OURS = "mcp-server-bundle"
"""The package whose servers need `shared`, which is part of it. All others list it in their requirements."""
_SERVERS, _SHARED = (Path(str(module.__file__)).resolve().parent for module in (catalogs, version))


def bundle_name(entry: Entry) -> str:
    """Return the name of the file. Raises ValueError if the version can't be part of it."""
    if _VERSION.fullmatch(entry.version) is None:
        raise ValueError(f"{entry.name}: the version {entry.version!r} can't be a part of a file's name")
    return f"{entry.name}-{entry.version}.mcpb"


def make_bundle(entry: Entry, package: Package, catalog: Catalog) -> bytes:
    """Return the ZIP file; the same sources give the same bytes. Raises ValueError if one of its files can't be
    read."""
    icon = _icon(entry)
    described = make_manifest(entry, package) | ({"icon": _ICON} if icon else {})
    # Nothing is built from it; uv only installs the requirements. JSON strings are also TOML strings if they contain
    # no control characters.
    dependencies = "".join(f"    {json.dumps(line)},\n" for line in package.requirements)
    project = (
        f"[project]\nname = {json.dumps(entry.script)}\nversion = {json.dumps(entry.version)}\n"
        f"requires-python = {json.dumps(package.python)}\ndependencies = [\n{dependencies}]\n\n"
        "[tool.uv]\npackage = false\n"
    )
    files = {
        "manifest.json": (json.dumps(described, indent=2, ensure_ascii=False) + "\n").encode(),
        "pyproject.toml": project.encode(),
        "main.py": _MAIN.format(module=entry.module).encode(),
        **{name: text.encode() for name, text in package.licences.items()},
        **icon,
        **sources_of(entry, package, catalog),
    }
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, _EARLIEST)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3  # Unix, so that the next line makes the file readable by all
            member.external_attr = 0o100644 << 16
            archive.writestr(member, content)
    return written.getvalue()


def make_manifest(entry: Entry, package: Package) -> dict[str, Any]:
    """Return the manifest without the icon. Raises ValueError if a default would be read as a variable."""
    arguments = choose_arguments(entry)
    filling = [argument for argument in arguments if fills_command(argument)]
    command = [
        part for argument in filling for part in (*([argument.option] if argument.option else []), _value(argument))
    ]
    variables = {
        argument.environment: _value(argument)
        for argument in arguments
        if argument.environment and not fills_command(argument)
    }
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
            "entry_point": "main.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "main.py", *command],
                "env": variables,
            },
        },
        "tools": [{"name": name} for name in entry.tools.read],
        "tools_generated": bool(entry.tools.write),
        "prompts_generated": bool(entry.prompts),
        "keywords": ["mcp", entry.category],
        **({"license": entry.licence} if entry.licence else {}),
        "compatibility": {"runtimes": {"python": package.python}},
        "user_config": {argument.name: _field(argument) for argument in arguments},
    }


def _icon(entry: Entry) -> dict[str, bytes]:
    """Return the icon's file, by its name in the bundle; nothing if it is not a PNG file on this machine."""
    if entry.icon is None or "://" in entry.icon:
        return {}
    try:
        content = Path(entry.icon).read_bytes()
    except OSError as error:
        raise ValueError(f"{entry.name}: {entry.icon}: {error.strerror}") from None
    return {_ICON: content} if content.startswith(_PNG) else {}


def _value(argument: Argument) -> str:
    return f"${{user_config.{argument.name}}}"


def _field(argument: Argument) -> dict[str, Any]:
    several = argument.repeated and is_path(argument) and fills_command(argument)
    return {
        "type": "number" if argument.type == "integer" else argument.type,
        "title": title(argument),
        "description": argument.description[:1].upper() + argument.description[1:],
        "required": argument.required,
        **({"multiple": True} if several else {}),
        **({"sensitive": True} if argument.secret else {}),
        **({} if argument.required else {"default": [] if several else _default(argument)}),
    }


def _default(argument: Argument) -> bool | str:
    default = argument.default
    if isinstance(default, str) and "${" in default:
        raise ValueError(f"a host would put something else in place of the default of {argument.name!r}: {default}")
    if argument.type == "boolean":
        return default is True
    return default if isinstance(default, str) else ""


# The sources


def sources_of(entry: Entry, package: Package, catalog: Catalog) -> dict[str, bytes]:
    """Return the contents of the sources, by their paths relative to the import directory.

    This is the whole top package of the server. But if several servers of the catalog are side by side in one
    package, each is expected to be independent, as ours are: then it is only the server's own folder, with the
    modules next to the folders that it imports. Raises ValueError if the module is not found, or a file can't be
    read.
    """
    top, *inner = entry.module.split(".")
    place = _place(top)
    own_files = _files(place.joinpath(*inner)) if _has_neighbours(entry, catalog) else _files(place)
    above = [place.joinpath(*inner[:depth], "__init__.py") for depth in range(len(inner))]
    roots = [(place.parent, path) for path in (*above, *own_files) if path.is_file()]
    try:
        if _has_neighbours(entry, catalog):
            roots += [(place.parent, path) for path in _imported(place.joinpath(*inner[:-1]), entry, roots)]
        if package.name == OURS:
            roots += [(_SHARED.parent, path) for path in _files(_SHARED) if _SERVERS not in path.parents]
        contents = {path.relative_to(root).as_posix(): path.read_bytes() for root, path in roots}
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}") from None
    return dict(sorted(contents.items()))


def _imported(folder: Path, entry: Entry, roots: Sequence[tuple[Path, Path]]) -> Iterator[Path]:
    """Yield the files of the modules and packages of the folder that one of the sources imports by their full
    names."""
    above = re.escape(entry.module.rpartition(".")[0])
    texts = [path.read_bytes() for _, path in roots if path.suffix == ".py"]
    for path in (*folder.glob("*.py"), *(init.parent for init in folder.glob("*/__init__.py"))):
        line = re.compile(rf"^[ \t]*(?:from|import) {above}\.{re.escape(path.stem)}\b".encode(), re.MULTILINE)
        if any(line.search(text) for text in texts):
            yield from _files(path) if path.is_dir() else (path,)


def _has_neighbours(entry: Entry, catalog: Catalog) -> bool:
    above = entry.module.rpartition(".")[0]
    modules = [other.module for other in catalog.servers if other.module != entry.module]
    return bool(above) and any(module.rpartition(".")[0] == above for module in modules)


def _place(top: str) -> Path:
    """Return the folder of a package, or the path of a module without its suffix."""
    spec = find_spec(top)
    if spec is None:
        raise ValueError(f"there is no Python module {top!r} installed here")
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0]) if folders else Path(spec.origin or top).with_suffix("")


def _files(place: Path) -> Iterator[Path]:
    """Yield all files of a package, or the single file of a module."""
    if not place.is_dir():
        yield place.with_suffix(".py")
        return
    for path in place.rglob("*"):
        hidden = any(part == "__pycache__" or part.startswith(".") for part in path.relative_to(place).parts)
        if path.is_file() and not hidden:
            yield path
