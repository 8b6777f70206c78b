"""Installs a server in the file of a client, or removes it: the change is first computed, then applied.

A receipt records the installation on this machine, so that exactly that can be removed without a trace. Receipts are
in the user's state directory, with the backups of the changed files. They do not contain the entries, which may have
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
    """The additions to one file: its entries in order, and the file itself."""

    entries: Mapping[str, Receipt] = {}
    made_file: bool = False
    made_folders: int = 0
    """The number of directories created for it."""


_FILE = TypeAdapter(dict[str, Record])


class Receipts:
    """The receipts of this machine, in one file."""

    def __init__(self, machine: Machine) -> None:
        self._path = Path(state_folder(machine)) / "installed.json"

    def of(self, path: Path) -> Record:
        """Return the additions to the file at `path`. Raises ValueError if the receipts can't be read."""
        return self._all().get(str(path), Record())

    def store(self, path: Path, record: Record) -> None:
        """Store the additions to the file at `path`. Raises ValueError if they can't be written."""
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
    """The file of a client on a machine."""

    client: Client
    machine: Machine
    path: Path

    @classmethod
    def of(cls, client: Client, machine: Machine, scope: Scope, project: Path) -> "Target":
        """Return the file of one scope. Raises ValueError if the client has no such scope, or for circular links."""
        path = client.file(machine, scope, project)
        try:
            return cls(client, machine, path.resolve())
        except (OSError, RuntimeError) as error:
            raise ValueError(f"{path}: {error}") from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock it and the receipts against other processes during the block.

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
    """The position of the new entry in `after`."""
    notes: tuple[str, ...] = ()
    """Notes about it for the user."""

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to change."""
        return self.before == self.after

    def make(self) -> Path | None:
        """Apply the change; return the path of the backup, if there was a file. Raises ValueError if that fails."""
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
                # Before the entry: a receipt without its entry has no effect, and if it can't be stored the change
                # stops here. A receipt is needed as long as its entry exists.
                receipts.store(path, record)
            # Writing the backup and the receipts takes time, and clients write their files often.
            write_atomically(path, self.after, self._check)
        if self.shown is None:
            receipts.store(path, record)
        return backup

    def _check(self) -> None:
        if read_bytes(self.target.path) != self.before:
            raise ValueError(f"{self.target.path} has just been changed by another program: try again")


def install(target: Target, server: ConfiguredServer, replace: bool) -> Change:
    """Return the change that adds `server` to the file.

    Raises ValueError for a file that the client can't read, and for another entry with that name that was not added
    by the bundle, or has been changed since, unless `replace` is given.
    """
    client, path = target.client, target.path
    entry = build_entry(client, server)
    before = read_bytes(path)
    entries = read_entries(client, path)
    present, record = entries.get(server.name), _record(target, entries)
    text, notes = before or b"", list[str]()
    if client.format == "json" and text.startswith(jsonc.BOM):
        text = text.removeprefix(jsonc.BOM)
        notes.append(f"its byte order mark was removed, because {client.title} may treat such a file as empty")
    if present == entry:
        return Change(target, before, None if before is None else text, record, notes=tuple(notes))
    installed = record.entries.get(server.name)
    is_ours = installed is not None and installed.is_of(present)
    if server.name in entries and not replace and not is_ours:
        raise ValueError(f"{path} already has a server {server.name!r}: use --replace, or another --name")
    with _name_file(path):
        edit = _EDITS[client.format].put(text, client, server.name, entry, installed)
    if is_ours:
        notes.append(f"{server.name!r} had other arguments, which are replaced; to keep both, use another --name")
    receipt = edit.receipt._replace(former=digest_of(present) if is_ours else "")
    record = record._replace(entries={**record.entries, server.name: receipt})
    return Change(target, before, edit.text, record, (edit.start, edit.end), tuple(notes))


def uninstall(target: Target, name: str, program: Sequence[str]) -> Change:
    """Return the change that removes the server called `name` from the file.

    Raises ValueError for a file that the client can't read, for an unknown server, and for one that was not added by
    the bundle, or has been changed since, unless its command begins with `program`.
    """
    client, path = target.client, target.path
    before = read_bytes(path)
    entries = read_entries(client, path)
    if before is None or name not in entries:
        raise ValueError(f"{path} has no server {name!r}")
    record = _record(target, entries)
    entry, receipt = entries[name], record.entries.get(name)
    args = entry.get("args", []) if isinstance(entry, dict) else None
    is_program = isinstance(args, list) and [entry.get("command"), *args][: len(program)] == list(program)
    if (receipt is None or not receipt.is_of(entry)) and not is_program:
        why = "was not added by install" if receipt is None else "was changed after install added it"
        raise ValueError(f"{path}: the server {name!r} {why}: remove it by hand")
    with _name_file(path):
        text, remaining = _EDITS[client.format].remove(before, client, name, record.entries)
    deletes = not text and record.made_file
    return Change(target, before, None if deletes else text, record._replace(entries=remaining))


@contextmanager
def _name_file(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _record(target: Target, entries: Mapping[str, Any]) -> Record:
    """Return the additions to the file that still exist: others may have removed entries, or the file itself."""
    record = Receipts(target.machine).of(target.path)
    remaining = {name: receipt for name, receipt in record.entries.items() if name in entries}
    if remaining:
        return record._replace(entries=remaining)
    # An interrupted change may have created directories, and no file.
    return Record() if target.path.exists() else Record(made_folders=record.made_folders)
