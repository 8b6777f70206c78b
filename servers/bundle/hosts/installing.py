"""Adds a server to the file of a client, or removes it. A change is first computed, to be shown, and then applied.

A receipt records what was added to a file, so that exactly that can be removed later. Receipts are stored in the
user's state directory, as are backups of the changed files. They do not contain the entries, which may contain
secrets.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from servers.common.machine import Machine, state_folder

from . import json_edits, jsonc, toml_edits
from .clients import Client, Scope
from .configured import ConfiguredServer, build_entry, read_bytes, read_entries
from .files import back_up, hold_lock, remove_file, write_atomically
from .json_edits import Receipt, digest_of

_EDITS = {"json": json_edits, "jsonc": json_edits, "toml": toml_edits}


class Record(NamedTuple):
    """The additions to one file: the receipts of its entries, by name and in order, and whether the file is new."""

    entries: Mapping[str, Receipt] = {}
    made_file: bool = False
    made_folders: int = 0
    """The number of directories that were created for the file."""


_FILE = TypeAdapter(dict[str, Record])


class Receipts:
    """The receipts of this machine, in one file."""

    def __init__(self, machine: Machine) -> None:
        self._path = Path(state_folder(machine)) / "installed.json"

    def of(self, path: Path) -> Record:
        """Return what was added to the file at `path`. Raises ValueError if the receipts can't be read."""
        return self._all().get(str(path), Record())

    def store(self, path: Path, record: Record) -> None:
        """Store what was added to the file at `path`. Raises ValueError if the receipts can't be written."""
        records = dict(self._all())
        if record.entries:
            records[str(path)] = record
        else:
            records.pop(str(path), None)
        write_atomically(self._path, _FILE.dump_json(records, indent=2))

    def _all(self) -> Mapping[str, Record]:
        text = read_bytes(self._path)
        try:
            return _FILE.validate_json(text) if text else {}
        except ValidationError:
            raise ValueError(f"{self._path} is damaged: remove it, and remove the entries by hand") from None


class Target(NamedTuple):
    """The file of a client to change."""

    client: Client
    machine: Machine
    path: Path

    @classmethod
    def of(cls, client: Client, machine: Machine, scope: Scope, project: Path) -> "Target":
        """Return the file of a client for one scope. Raises ValueError if it has none, and for circular links."""
        path = client.file(machine, scope, project)
        try:
            return cls(client, machine, path.resolve())
        except (OSError, RuntimeError) as error:
            raise ValueError(f"{path}: {error}") from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock all files and receipts against other processes of the bundle during the block.

        Raises ValueError if the lock can't be acquired.
        """
        with hold_lock(Path(state_folder(self.machine)) / "lock"):
            yield


class Change(NamedTuple):
    """A change to a client's file that has not been applied yet."""

    target: Target
    before: bytes | None
    after: bytes | None
    record: Record
    shown: tuple[int, int] | None = None
    """The position of the new entry in `after`; None if no entry is added."""
    notes: tuple[str, ...] = ()
    """Notes about the change for the user."""

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to change."""
        return self.before == self.after

    def apply(self) -> Path | None:
        """Make the change. Return the path of the backup; None if there was no file before. Raises ValueError."""
        path, record, backup = self.target.path, self.record, None
        receipts = Receipts(self.target.machine)
        self._check()
        if self.before is not None:
            folder = Path(state_folder(self.target.machine)) / "backups" / self.target.client.name
            backup = back_up(folder, path, self.before)
        if self.after is None:
            self._check()
            remove_file(path, record.made_folders)
        else:
            if self.before is None:
                created = sum(not folder.exists() for folder in path.parents)
                record = record._replace(made_file=True, made_folders=max(record.made_folders, created))
            if self.shown is not None:
                # Store the receipt before the entry is written, and delete it after the entry is removed: a receipt
                # without an entry does no harm, but an entry without a receipt can't be removed exactly.
                receipts.store(path, record)
            # `_check` again, since writing the backup and the receipts takes time, and clients often write their
            # files.
            write_atomically(path, self.after, self._check)
        if self.shown is None:
            receipts.store(path, record)
        return backup

    def _check(self) -> None:
        if read_bytes(self.target.path) != self.before:
            raise ValueError(f"{self.target.path} has just been changed by another program: try again")


def install(target: Target, server: ConfiguredServer, replace: bool) -> Change:
    """Return the change that adds `server` to the file.

    Raises ValueError for a file that the client can't read. Also raises it, unless `replace` is true, if there is
    another entry with that name that the bundle has not added, or that was changed since.
    """
    client, path = target.client, target.path
    entry = build_entry(client, server)
    before = read_bytes(path)
    entries = read_entries(client, path)
    present, record = entries.get(server.name), _current_record(target, entries)
    text, notes = before or b"", list[str]()
    if client.format == "json" and text.startswith(jsonc.BOM):
        text = text.removeprefix(jsonc.BOM)
        notes.append(f"its byte order mark was removed, because {client.title} may treat such a file as empty")
    if present == entry:
        return Change(target, before, None if before is None else text, record, notes=tuple(notes))
    installed = record.entries.get(server.name)
    was_added_by_bundle = installed is not None and installed.is_of(present)
    if server.name in entries and not replace and not was_added_by_bundle:
        raise ValueError(f"{path} already has a server {server.name!r}: use --replace, or another --name")
    with _name_file(path):
        edit = _EDITS[client.format].insert_entry(text, client, server.name, entry, installed)
    if was_added_by_bundle:
        notes.append(f"{server.name!r} had another entry, which is replaced; to keep both, use another --name")
    receipt = edit.receipt._replace(former=digest_of(present) if was_added_by_bundle else "")
    record = record._replace(entries={**record.entries, server.name: receipt})
    return Change(target, before, edit.text, record, (edit.start, edit.end), tuple(notes))


def uninstall(target: Target, name: str, program: Sequence[str]) -> Change:
    """Return the change that removes the server called `name` from the file.

    Raises ValueError for a file that the client can't read, and for an unknown server. Also raises it, unless the
    command of the entry begins with `program`, if the bundle has not added the entry, or if it was changed since.
    """
    client, path = target.client, target.path
    before = read_bytes(path)
    entries = read_entries(client, path)
    if before is None or name not in entries:
        raise ValueError(f"{path} has no server {name!r}")
    record = _current_record(target, entries)
    entry, receipt = entries[name], record.entries.get(name)
    args = entry.get("args", []) if isinstance(entry, dict) else None
    is_program = isinstance(args, list) and [entry.get("command"), *args][: len(program)] == list(program)
    if (receipt is None or not receipt.is_of(entry)) and not is_program:
        why = "was not added by install" if receipt is None else "was changed after install added it"
        raise ValueError(f"{path}: the server {name!r} {why}: remove it by hand")
    with _name_file(path):
        text, remaining = _EDITS[client.format].remove_entry(before, client, name, record.entries)
    deletes = not text and record.made_file
    return Change(target, before, None if deletes else text, record._replace(entries=remaining))


@contextmanager
def _name_file(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _current_record(target: Target, entries: Mapping[str, Any]) -> Record:
    """Return what was added to the file and still exists: the user may have removed entries, or the file itself."""
    record = Receipts(target.machine).of(target.path)
    remaining = {name: receipt for name, receipt in record.entries.items() if name in entries}
    if remaining:
        return record._replace(entries=remaining)
    # If the file does not exist, an interrupted change may still have created directories.
    return Record() if target.path.exists() else Record(made_folders=record.made_folders)
