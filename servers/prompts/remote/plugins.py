"""Parses marketplace files, which list plugins, in Claude Code's format (its documentation, Plugin marketplaces).

Plugins with a relative path are in folders of the library itself. The others are in git repositories of their own.
"""

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ..errors import PromptError
from ..library.folder import check_path
from .address import Address, parse_address

MAX_MANIFEST_BYTES = 4_000_000
"""Maximum size of a marketplace file, in bytes."""
_MAX_PLUGINS = 500
_GITHUB_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")
_SSH_ADDRESS = re.compile(r"([A-Za-z0-9_.-]+@[A-Za-z0-9.-]+):([^:]+)")


class Plugin(NamedTuple):
    """A plugin that is not in a folder of the library with the marketplace."""

    name: str
    address: Address | None
    """The address of the plugin; None if it can't be fetched."""
    reason: str = ""
    """The reason why the plugin can't be fetched."""


def parse_marketplace(data: bytes, root: Path, scheme: str) -> list[Plugin]:
    """Return the plugins that are in other repositories or can't be found. `root` is the folder with the marketplace,
    and `scheme` is that of its address. Raises PromptError if the file is not a marketplace."""
    try:
        content = json.loads(data)
        rows, metadata = content["plugins"], content.get("metadata") or {}
        plugin_root = metadata.get("pluginRoot") or ""
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise PromptError("bad_prompt", "it is not a marketplace: a JSON object with a list of `plugins`") from None
    if not isinstance(rows, list) or not isinstance(plugin_root, str) or len(rows) > _MAX_PLUGINS:
        raise PromptError("bad_prompt", f"it is not a marketplace, or it lists more than {_MAX_PLUGINS} plugins")
    plugins: list[Plugin] = []
    names: set[str] = set()
    for row in rows:
        name, source = (row.get("name"), row.get("source")) if isinstance(row, dict) else (None, None)
        if not isinstance(name, str) or "/" in name or check_path(name) is not None or not name.isprintable():
            reason = f"a plugin has a name that no folder can have: {str(name)[:100]!r}"
            plugins.append(Plugin("", None, reason))
        elif isinstance(source, str):
            path = PurePosixPath(source)
            parents = [folder for folder in ("", plugin_root) if ".." not in PurePosixPath(folder).parts]
            is_inside = ".." not in path.parts and not path.is_absolute()
            if not is_inside or not any((root / folder / source).is_dir() for folder in parents):
                plugins.append(Plugin(name, None, f"the marketplace has no folder {source[:200]!r}"))
        elif name.casefold() in names:
            plugins.append(Plugin(name, None, "another plugin has this name"))
        else:
            names.add(name.casefold())
            plugins.append(_parse_source(name, source, scheme))
    return plugins


def _parse_source(name: str, source: Any, scheme: str) -> Plugin:
    """Return the plugin with the address in its `source`, which must be of the type github, url or git-subdir.

    The address must use HTTPS, or the scheme of the marketplace: a remote marketplace must not refer to a repository
    on this machine.
    """
    kind = source.get("source") if isinstance(source, dict) else None
    if kind not in ("github", "url", "git-subdir"):
        return Plugin(name, None, f"its source is {str(kind)[:40]!r}, and only git repositories are fetched")
    url, ref, path = (source.get(key) or "" for key in ("repo" if kind == "github" else "url", "ref", "path"))
    url, ref, path = str(url), str(source.get("sha") or ref), str(path).removeprefix("./").strip("/")
    if _GITHUB_REPOSITORY.fullmatch(url):
        url = f"https://github.com/{url}"
    elif (match := _SSH_ADDRESS.fullmatch(url)) is not None:
        url = f"ssh://{match[1]}/{match[2]}"
    try:
        reference, folder = f"@{ref}" if ref else "", f"#subdirectory={path}" if path else ""
        address = parse_address(f"git+{url}{reference}{folder}")
    except ValueError as error:
        return Plugin(name, None, f"its source can't be fetched: {error}")
    if address.scheme not in ("https", scheme):
        return Plugin(name, None, f"its source uses {address.scheme}, not https")
    return Plugin(name, address)
