"""`python -m servers export`: files for the MCP registry, for hosts, and for Docker's MCP gateway."""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from servers.catalog import load_catalog
from shared.program.files.atomic import prepare_replacement, put_in_place
from shared.program.files.entries import entry_at, stat_entry
from shared.program.messages import exit_with_error

from ..exports.containers import describe_container
from ..exports.desktop import bundle_name, make_bundle
from ..exports.plugins import MARKETPLACE, has_plugin, make_marketplace, make_plugin
from ..exports.registry import NAMESPACE, describe_server
from ..exports.servers import as_json, package_of
from ..terminal.command_parser import CommandParser


def main(argv: Sequence[str]) -> int:
    """Write the files, and print for each what the user can do with it; return the exit code."""
    parser = CommandParser(
        "export", "Write bundles, plugins, and entries for the MCP registry and Docker's MCP gateway."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="server to export (default: all)")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="directory for the files")
    parser.add_argument(
        "--namespace", default=NAMESPACE, help="publisher, as a reversed domain name (default: %(default)s)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite files whose contents differ")
    parser.add_catalog()
    options = parser.parse_args(argv)
    try:
        catalog = load_catalog(options.catalog)
        entries = [catalog.entry(name) for name in dict.fromkeys(options.names)] or catalog.servers
        packages = [(entry, package_of(entry)) for entry in entries]
        files: dict[str, bytes] = {}
        for entry, package in packages:
            files[f"{entry.name}/server.json"] = as_json(describe_server(entry, package, options.namespace))
            files[f"{entry.name}/{bundle_name(entry)}"] = make_bundle(entry, package, catalog)
            if entry.image is not None:
                files[f"{entry.name}/{entry.name}.yaml"] = describe_container(entry).encode()
        plugins = [(entry, package) for entry, package in packages if has_plugin(entry)]
        for entry, package in plugins:
            contents = make_plugin(entry, package, catalog)
            files |= {f"{entry.name}/plugin/{name}": content for name, content in contents.items()}
        if plugins:
            files[MARKETPLACE] = make_marketplace(plugins)
        paths = write_files(options.output, files, force=options.force)
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    except OSError as error:
        exit_with_error(parser.prog, f"{error.filename}: {error.strerror}")
    for path in paths:
        if step := _next_step(path):
            print(f"{path}: {step}")  # noqa: T201 - it is the output
    return 0


def _next_step(path: Path) -> str | None:
    """Return what the user can do with the file at `path`; None for a file that is only a part of a plugin."""
    match path.name:
        case "server.json":
            publish = f"mcp-publisher publish {quote(str(path))}"
            return f"once the package is on PyPI, list it in the MCP registry with: {publish}"
        case "gemini-extension.json":
            return f"install it in Gemini CLI with: gemini extensions install {quote(str(path.parent))}"
        case "marketplace.json":
            add = f"plugin marketplace add {quote(str(path.parents[1].absolute()))}"
            return f"offer the plugins in Claude Code with: claude {add}; in Codex with: codex {add}"
    if path.suffix == ".mcpb":
        return "open it with Claude Desktop, or another host that installs MCPB bundles"
    if path.suffix == ".yaml":
        return (
            "copy it to ~/.docker/mcp/catalogs, then: "
            f"docker mcp profile create --name {path.stem} --server file://{path.name}"
        )
    return None


def write_files(folder: Path, files: Mapping[str, bytes], *, force: bool = False) -> list[Path]:
    """Write `files`, contents by relative path, in `folder`, which is created if necessary; return the paths.

    An existing file with another content is replaced only with `force`: otherwise ValueError is raised, and nothing
    is written. Each file is replaced atomically. Raises OSError if the folder can't be written.
    """
    paths = {folder / name: content for name, content in files.items()}
    for path, content in paths.items():
        if not force and os.path.lexists(path) and (not path.is_file() or path.read_bytes() != content):
            raise ValueError(f"{path} already exists with different contents; --force replaces it")
    for path, content in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        entry = entry_at(path.parent.resolve() / path.name)
        existing = stat_entry(entry)
        # If it is a link, replace the link itself, not its target.
        replaced = None if existing is None or stat.S_ISLNK(existing.st_mode) else existing
        put_in_place(prepare_replacement(entry, content, replaced, mode=0o644), entry, existing)
    return list(paths)
