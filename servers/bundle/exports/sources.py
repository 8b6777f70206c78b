"""The sources of one server, for hosts that start it with uv.

At the first start, uv creates the environment next to a pyproject.toml on the user's machine, for its system and
processor. Wheels follow
https://packaging.python.org/specifications/binary-distribution-format/.
"""

import base64
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from servers import catalog as catalogs
from servers.catalog import Catalog, Entry
from shared import version

from .servers import Package

PROJECT = "pyproject.toml"
MAIN = "main.py"
"""The script of a bundle that starts the server."""
ICON = "icon.png"
_MAIN = '''"""Starts the server."""

import runpy

runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
'''
_PNG = b"\x89PNG\r\n\x1a\n"
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # a ZIP file can't contain an earlier time
BUNDLE_PACKAGE = "mcp-server-bundle"
"""The name of the bundle's own package, which contains `shared`. Other packages have it in their requirements."""
_SERVERS, _SHARED = (Path(str(module.__file__)).resolve().parent for module in (catalogs, version))


def make_zip(files: Mapping[str, bytes]) -> bytes:
    """Return a ZIP file of `files`, contents by path. The same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, _EARLIEST)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3  # Unix, so that the next line makes the file readable by all
            member.external_attr = 0o100644 << 16
            archive.writestr(member, content)
    return buffer.getvalue()


def pack_project(entry: Entry, package: Package, sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a folder from which uv runs `main.py`, contents by path."""
    return {
        PROJECT: _project(str(entry.script), entry, package, package.requirements).encode(),
        MAIN: _MAIN.format(module=entry.module).encode(),
        **sources,
    }


def pack_wheel_project(entry: Entry, package: Package, sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a folder from which uv runs the console script of the server, contents by path. The sources
    are in a wheel."""
    name = re.sub(r"[-_.]+", "_", str(entry.script)).lower()
    info = f"{name}-{package.version}.dist-info"
    requirements = "".join(f"Requires-Dist: {line}\n" for line in package.requirements)
    metadata = {
        "METADATA": f"Metadata-Version: 2.1\nName: {entry.script}\nVersion: {package.version}\n"
        f"Requires-Python: {package.python}\n{requirements}",
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: {BUNDLE_PACKAGE}\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "entry_points.txt": f"[console_scripts]\n{entry.script} = {package.scripts[str(entry.script)]}\n",
    }
    files = {**sources, **{f"{info}/{part}": text.encode() for part, text in metadata.items()}}
    digests = {path: base64.urlsafe_b64encode(hashlib.sha256(content).digest()) for path, content in files.items()}
    lines = [f"{path},sha256={digest.decode().rstrip('=')},{len(files[path])}\n" for path, digest in digests.items()]
    files[f"{info}/RECORD"] = f"{''.join(lines)}{info}/RECORD,,\n".encode()
    wheel = f"{name}-{package.version}-py3-none-any.whl"
    project = _project(f"{entry.script}-plugin", entry, package, [str(entry.script)])
    source = f"\n[tool.uv.sources]\n{entry.script} = {{ path = {json.dumps(wheel)} }}\n"
    return {PROJECT: (project + source).encode(), wheel: make_zip(files)}


def _project(name: str, entry: Entry, package: Package, requirements: Sequence[str]) -> str:
    # uv only installs the requirements, and builds nothing. A JSON string without control characters is also a TOML
    # string.
    dependencies = "".join(f"    {json.dumps(line)},\n" for line in requirements)
    return (
        f"[project]\nname = {json.dumps(name)}\nversion = {json.dumps(entry.version)}\n"
        f"requires-python = {json.dumps(package.python)}\ndependencies = [\n{dependencies}]\n\n"
        "[tool.uv]\npackage = false\n"
    )


def displayed_files(entry: Entry, package: Package) -> dict[str, bytes]:
    """Return the files that hosts show to users: the licenses, and `icon.png` if the icon of the server is a PNG file
    on this machine. Raises ValueError if the icon can't be read."""
    files = {name: text.encode() for name, text in package.licenses.items()}
    if entry.icon is None or "://" in entry.icon:
        return files
    try:
        content = Path(entry.icon).read_bytes()
    except OSError as error:
        raise ValueError(f"{entry.name}: {entry.icon}: {error.strerror}") from None
    return {**files, ICON: content} if content.startswith(_PNG) else files


def sources_of(entry: Entry, package: Package, catalog: Catalog) -> dict[str, bytes]:
    """Return the sources of a server, contents by path, relative to a directory from which they can be imported.

    In general, these are the whole top-level package of the server. If the same package contains several servers of
    the catalog side by side, like the bundle's own, each is expected to be independent: then the sources are only the
    server's own folder, and those modules next to it that it imports. Raises ValueError if the module is not
    installed, or a file can't be read.
    """
    top, *inner = entry.module.split(".")
    spec = find_spec(top)
    if spec is None:
        raise ValueError(f"the Python module {top!r} is not installed here")
    folders = list(spec.submodule_search_locations or ())
    location = Path(folders[0]) if folders else Path(spec.origin or top).with_suffix("")
    own_files = _files(location.joinpath(*inner)) if _has_siblings(entry, catalog) else _files(location)
    above = [location.joinpath(*inner[:depth], "__init__.py") for depth in range(len(inner))]
    roots = [(location.parent, path) for path in (*above, *own_files) if path.is_file()]
    try:
        if _has_siblings(entry, catalog):
            roots += [
                (location.parent, path) for path in _imported_files(location.joinpath(*inner[:-1]), entry, roots)
            ]
        if package.name == BUNDLE_PACKAGE:
            roots += [(_SHARED.parent, path) for path in _files(_SHARED) if _SERVERS not in path.parents]
        contents = {path.relative_to(root).as_posix(): path.read_bytes() for root, path in roots}
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}") from None
    return dict(sorted(contents.items()))


def _imported_files(folder: Path, entry: Entry, roots: Sequence[tuple[Path, Path]]) -> Iterator[Path]:
    """Yield the files of the modules and packages in `folder` that a source imports by their full names."""
    above = re.escape(entry.module.rpartition(".")[0])
    texts = [path.read_bytes() for _, path in roots if path.suffix == ".py"]
    for path in (*folder.glob("*.py"), *(init.parent for init in folder.glob("*/__init__.py"))):
        line = re.compile(rf"^[ \t]*(?:from|import) {above}\.{re.escape(path.stem)}\b".encode(), re.MULTILINE)
        if any(line.search(text) for text in texts):
            yield from _files(path) if path.is_dir() else (path,)


def _has_siblings(entry: Entry, catalog: Catalog) -> bool:
    above = entry.module.rpartition(".")[0]
    modules = [other.module for other in catalog.servers if other.module != entry.module]
    return bool(above) and any(module.rpartition(".")[0] == above for module in modules)


def _files(location: Path) -> Iterator[Path]:
    """Yield the files of the package at `location`, or the file of the module there."""
    if not location.is_dir():
        yield location.with_suffix(".py")
        return
    for path in location.rglob("*"):
        hidden = any(part == "__pycache__" or part.startswith(".") for part in path.relative_to(location).parts)
        if path.is_file() and not hidden:
            yield path
