"""The files that a server is made of."""

import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from ..catalog import Catalog, Entry
from .packages import Package

__all__ = ["sources_of"]

OURS = "mcp-server-bundle"
"""The package whose servers stand on `shared`, which comes with it. All others ask for it as they do for the rest."""


def sources_of(entry: Entry, package: Package, catalog: Catalog) -> dict[str, bytes]:
    """Their contents, by their paths from the directory that is to be imported from.

    It is the whole of the server's top package. But where several servers of the catalog stand side by side in one
    package, each is taken to stand alone, as ours do: then it is the server's own folder only, with the modules
    beside the folders that it imports. Raises ValueError where the module is not found, or a file can't be read.
    """
    top, *inner = entry.module.split(".")
    place = _place(top)
    wanted = _files(place.joinpath(*inner)) if _has_neighbours(entry, catalog) else _files(place)
    above = [place.joinpath(*inner[:depth], "__init__.py") for depth in range(len(inner))]
    roots = [(place.parent, path) for path in (*above, *wanted) if path.is_file()]
    try:
        if _has_neighbours(entry, catalog):
            roots += [(place.parent, path) for path in _imported(place.joinpath(*inner[:-1]), entry, roots)]
        if package.name == OURS:
            roots += [(_place("shared").parent, path) for path in _files(_place("shared"))]
        found = {path.relative_to(root).as_posix(): path.read_bytes() for root, path in roots}
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}") from None
    return dict(sorted(found.items()))


def _imported(folder: Path, entry: Entry, roots: Sequence[tuple[Path, Path]]) -> Iterator[Path]:
    """The modules of the folder that one of the sources imports by its whole name."""
    above = re.escape(entry.module.rpartition(".")[0])
    texts = [path.read_bytes() for _, path in roots if path.suffix == ".py"]
    for path in folder.glob("*.py"):
        line = re.compile(rf"^[ \t]*(?:from|import) {above}\.{re.escape(path.stem)}\b".encode(), re.MULTILINE)
        if any(line.search(text) for text in texts):
            yield path


def _has_neighbours(entry: Entry, catalog: Catalog) -> bool:
    above = entry.module.rpartition(".")[0]
    modules = [other.module for other in catalog.servers if other.module != entry.module]
    return bool(above) and any(module.rpartition(".")[0] == above for module in modules)


def _place(top: str) -> Path:
    """The folder of a package, or the path of a module without its ending."""
    found = find_spec(top)
    if found is None:
        raise ValueError(f"there is no Python module {top!r} installed here")
    folders = list(found.submodule_search_locations or ())
    return Path(folders[0]) if folders else Path(found.origin or top).with_suffix("")


def _files(place: Path) -> Iterator[Path]:
    """All files of a package, or the one of a module."""
    if not place.is_dir():
        yield place.with_suffix(".py")
        return
    for path in place.rglob("*"):
        hidden = any(part == "__pycache__" or part.startswith(".") for part in path.relative_to(place).parts)
        if path.is_file() and not hidden:
            yield path
