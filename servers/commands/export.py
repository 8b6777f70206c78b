"""`python -m servers export`: files for the MCP registry, for desktop hosts, and for Docker's MCP catalog."""

import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from ..catalog import load_catalog
from ..exports.containers import container_catalog
from ..exports.desktop import bundle, bundle_name
from ..exports.packages import package_of
from ..exports.registry import NAMESPACE, server_json
from ..exports.writing import write_files
from .arguments import CommandParser, refuse

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Writes the files and prints their paths; the exit code."""
    parser = CommandParser("export", "Write what the MCP registry, desktop hosts and Docker's MCP catalog take.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a server; all of them, where none is named")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="directory for the files")
    parser.add_argument(
        "--namespace", default=NAMESPACE, help="who publishes, as a domain in reverse order (default: %(default)s)"
    )
    parser.add_argument("--force", action="store_true", help="replace files that hold something else")
    parser.add_catalog()
    options = parser.parse_args(argv)
    try:
        written = write_files(options.output, _files(options), force=options.force)
    except ValueError as error:
        refuse(parser.prog, str(error))
    except OSError as error:
        refuse(parser.prog, f"{error.filename}: {error.strerror}")
    for path in written:
        print(path)  # noqa: T201 - it is the output
    return 0


def _files(options: Namespace) -> dict[str, bytes]:
    """All contents, by their paths in the directory. Raises ValueError."""
    catalog = load_catalog(options.catalog)
    entries = [catalog.entry(name) for name in dict.fromkeys(options.names)] or catalog.servers
    files: dict[str, bytes] = {}
    for entry in entries:
        package = package_of(entry)
        described = json.dumps(server_json(entry, package, options.namespace), indent=2, ensure_ascii=False)
        files[f"{entry.name}/server.json"] = (described + "\n").encode()
        files[f"{entry.name}/{bundle_name(entry)}"] = bundle(entry, package, catalog)
    if any(entry.image for entry in entries):
        files["docker-catalog.yaml"] = container_catalog(package_of(entries[0]).name, entries).encode()
    return files
