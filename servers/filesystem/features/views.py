"""What the pages show besides the text of a result: entries with sizes and times, and diffs as they are.

A directory of a tree is here with all of its entries or with none, so that the page lists it itself.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from shared import Context
from shared.extensions.apps import show, shows_apps
from shared.program.files.entries import Place
from shared.text import displayed

from ..edit.edit import EditResult
from ..files import Files
from ..names import unbroken
from ..read.pages import fit, json_size
from ..search.listing import Listing
from ..search.page import ByteBudget
from ..search.tree import Tree, TreeNode
from .arguments import Ctx

FILES_APP, EDIT_APP = "ui://filesystem/files", "ui://filesystem/edit"
"""The pages that show a directory, and an edit."""

_BYTES = 90_000
"""Of the entries, or of a diff, as JSON."""
_OVERHEAD = 80
"""Bytes of an entry besides its names."""
_URI = "file:///"
_KINDS = {"symlink": "link"}

Entry = dict[str, Any]


def cursor_before(ctx: Context[Files]) -> str | None:
    """With which the page asks for changes from now on; None where it is not shown, or nobody has asked for changes
    yet: they are not watched for the sake of a list."""
    return ctx.state.journal.cursor if shows_apps(ctx) else None


def show_listing(ctx: Ctx, place: Place, found: Listing, cursor: str | None) -> None:
    """Shows the entries of one directory."""
    if not shows_apps(ctx):
        return
    entries: list[Entry] = []
    budget = ByteBudget(_BYTES)
    for one in found.entries:
        facts = {"size": one.size, "modified": one.modified}
        known = {name: value for name, value in facts.items() if value is not None}
        entry = _entry(one.name, one.kind, one.uri if "\\" in one.name else "") | known
        if not _takes(budget, entry):
            break
        entries.append(entry)
    _show(ctx, place, entries, found.truncated or len(entries) < len(found.entries), cursor)


def show_tree(ctx: Ctx, place: Place, found: Tree, cursor: str | None) -> None:
    """Shows a directory and what is below it."""
    if shows_apps(ctx):
        entries, is_whole = _flat(found["root"])
        _show(ctx, place, entries, found["truncated"] or not is_whole, cursor)


def show_edit(ctx: Ctx, paths: Sequence[str], edited: Sequence[EditResult], *, applied: bool) -> None:
    """Shows the changes of files."""
    if not shows_apps(ctx):
        return
    diff = "\n".join(unbroken(one.diff) for one in edited if one.diff)
    shown = diff if json_size(diff) <= _BYTES else diff[: fit(diff, _BYTES)]
    view: dict[str, Any] = {"diff": shown, "applied": applied, "more": len(shown) < len(diff)}
    if len(edited) == 1:
        view |= {"path": paths[0], "etag": edited[0].etag}
    show(ctx, view)


def _show(ctx: Ctx, place: Place, entries: list[Entry], more: bool, cursor: str | None) -> None:
    roots = ctx.state.beneath.roots
    path = roots.path(place)
    # What can't be shown as it is can't be asked for either, but by its URI.
    told = path if displayed(path) == path else roots.uri(place)
    view = {"path": told, "entries": entries, "more": more}
    show(ctx, view if cursor is None else {**view, "cursor": cursor})


def _entry(path: str, kind: str, uri: str) -> Entry:
    """An entry; with its `uri` where its name is not the one that is shown."""
    return {"path": path, "kind": _KINDS.get(kind, kind)} | ({"uri": uri} if uri else {})


def _takes(budget: ByteBudget, one: Entry) -> bool:
    return budget.take(_OVERHEAD, one["path"], one.get("uri", ""))


def _flat(root: TreeNode) -> tuple[list[Entry], bool]:
    """What is below the root, those on top first; and whether that is all."""
    entries: list[Entry] = []
    is_whole, budget = True, ByteBudget(_BYTES)
    pending = deque([("", "", root)])
    while pending:
        path, uri, node = pending.popleft()
        children = [(_named(path, uri, one), one) for one in node.get("children", ())]
        if node.get("cut") or not all(_takes(budget, entry) for entry, _ in children):
            is_whole = False
            continue
        for entry, one in children:
            entries.append(entry)
            pending.append((f"{entry['path']}/", entry.get("uri", ""), one))
    return entries, is_whole


def _named(path: str, uri: str, node: TreeNode) -> Entry:
    """A node of a tree in the directory at `path`, which has that `uri` where its own name is another one."""
    # No name has a slash, so that the URI behind it can be told from it.
    name, _, own = node["name"].partition(f" ({_URI}")
    if own:
        return _entry(path + name, node["kind"], _URI + own.removesuffix(")"))
    return _entry(path + name, node["kind"], f"{uri}/{quote(name)}" if uri else "")
