"""Data for the app pages, in addition to a result's text: entries with sizes and times, and complete diffs.

Each directory of a tree comes with all of its entries or with none. If it has none, the page requests a listing.
"""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from shared.extensions.apps import show, shows_apps
from shared.program.files.entries import Place
from shared.text import display_name

from ..names import escape_breaks
from ..read.pages import fitting_length, json_size
from ..search.page import ByteBudget
from .arguments import Ctx

if TYPE_CHECKING:
    from ..edit.edit import EditResult
    from ..search.listing import Listing
    from ..search.tree import Tree, TreeNode

FILES_APP, EDIT_APP = "ui://filesystem/files", "ui://filesystem/edit"
"""The URIs of the app pages that show a directory and an edit."""

_MAX_BYTES = 90_000
"""Maximum size in bytes of the entries, or of a diff, as JSON."""
_ENTRY_BYTES = 80
"""Size in bytes of an entry without its names."""
_FILE_SCHEME = "file:///"
_KINDS = {"symlink": "link"}

Entry = dict[str, Any]


def show_listing(ctx: Ctx, place: Place, listing: "Listing", cursor: str | None) -> None:
    """Show the entries of one directory on its page, which passes `cursor` to `changes` to learn of later changes."""
    if not shows_apps(ctx):
        return
    entries: list[Entry] = []
    budget = ByteBudget(_MAX_BYTES)
    for item in listing.entries:
        facts = {"size": item.size, "modified": item.modified}
        present = {name: value for name, value in facts.items() if value is not None}
        entry = _entry(item.name, item.kind, item.uri if "\\" in item.name else "") | present
        if not _fits(budget, entry):
            break
        entries.append(entry)
    _show(ctx, place, entries, listing.truncated or len(entries) < len(listing.entries), cursor)


def show_tree(ctx: Ctx, place: Place, tree: "Tree", cursor: str | None) -> None:
    """Show a directory and everything below it, like `show_listing`."""
    if not shows_apps(ctx):
        return
    entries: list[Entry] = []
    is_complete, budget = True, ByteBudget(_MAX_BYTES)
    # The top level comes first, so that it is complete.
    pending = deque([("", "", tree["root"])])
    while pending:
        path, uri, node = pending.popleft()
        children = [(_tree_entry(path, uri, inner), inner) for inner in node.get("children", ())]
        if node.get("cut") or not all(_fits(budget, entry) for entry, _ in children):
            is_complete = False
            continue
        for entry, inner in children:
            entries.append(entry)
            pending.append((f"{entry['path']}/", entry.get("uri", ""), inner))
    _show(ctx, place, entries, tree["truncated"] or not is_complete, cursor)


def show_edit(ctx: Ctx, paths: Sequence[str], edited: Sequence["EditResult"], *, applied: bool) -> None:
    """Show the changes to files."""
    if not shows_apps(ctx):
        return
    diff = "\n".join(escape_breaks(result.diff) for result in edited if result.diff)
    shown = diff if json_size(diff) <= _MAX_BYTES else diff[: fitting_length(diff, _MAX_BYTES)]
    view: dict[str, Any] = {"diff": shown, "applied": applied, "more": len(shown) < len(diff)}
    if len(edited) == 1:
        view |= {"path": paths[0], "etag": edited[0].etag}
    show(ctx, view)


def _show(ctx: Ctx, place: Place, entries: list[Entry], more: bool, cursor: str | None) -> None:
    roots = ctx.state.rooted.roots
    path = roots.path(place)
    # A path that is displayed with escapes can only be requested by its URI.
    address = path if display_name(path) == path else roots.uri(place)
    view = {"path": address, "entries": entries, "more": more}
    show(ctx, view if cursor is None else {**view, "cursor": cursor})


def _entry(path: str, kind: str, uri: str) -> Entry:
    """Return an entry, with its `uri` if its displayed name is escaped."""
    return {"path": path, "kind": _KINDS.get(kind, kind)} | ({"uri": uri} if uri else {})


def _fits(budget: ByteBudget, entry: Entry) -> bool:
    return budget.take(_ENTRY_BYTES, entry["path"], entry.get("uri", ""))


def _tree_entry(path: str, uri: str, node: "TreeNode") -> Entry:
    """Return the entry for a node in the directory at `path`. Its `uri` is set if its displayed name is escaped."""
    # No name contains a slash, so the URI after the name can be recognized.
    name, _, own_uri = node["name"].partition(f" ({_FILE_SCHEME}")
    if own_uri:
        return _entry(path + name, node["kind"], _FILE_SCHEME + own_uri.removesuffix(")"))
    return _entry(path + name, node["kind"], f"{uri}/{quote(name)}" if uri else "")
