"""Putting a server into the file of a client, and taking it out again: what would change, and the change itself.

A receipt says what was installed on this machine, so that it can be taken out again without a trace, and nothing else
is. Receipts stand in a directory of the user's own, with the backups of the files that were changed. They hold no
entry themselves: entries may have secrets.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from servers.common.machine import Machine, state_folder

from . import json_edits, jsonc, toml_edits
from .clients import Client, Scope
from .configured import Configured, as_entry, read_bytes, read_entries
from .files import back_up, hold_lock, remove_file, write_atomically
from .json_edits import Receipt, digest_of

_EDITS = {"json": json_edits, "jsonc": json_edits, "toml": toml_edits}


class Record(NamedTuple):
    """What was made in one file: its entries in the order they came, and the file itself."""

    entries: Mapping[str, Receipt] = {}
    made_file: bool = False
    made_folders: int = 0
    """How many directories were made for it."""


_FILE = TypeAdapter(dict[str, Record])


class Receipts:
    """The receipts of this machine, in one file."""

    def __init__(self, machine: Machine) -> None:
        self._path = Path(state_folder(machine)) / "installed.json"

    def of(self, path: Path) -> Record:
        """What was made in the file at `path`. Raises ValueError where the receipts can't be read."""
        return self._all().get(str(path), Record())

    def keep(self, path: Path, record: Record) -> None:
        """Keeps what was made in the file at `path`. Raises ValueError where that can't be written."""
        every = dict(self._all())
        if record.entries:
            every[str(path)] = record
        else:
            every.pop(str(path), None)
        write_atomically(self._path, _FILE.dump_json(every, indent=2))

    def _all(self) -> Mapping[str, Record]:
        text = read_bytes(self._path)
        try:
            return _FILE.validate_json(text) if text else {}
        except ValidationError:
            raise ValueError(f"{self._path} is damaged: remove it, and take entries out by hand") from None


class Target(NamedTuple):
    """The file of a client on a machine."""

    client: Client
    machine: Machine
    path: Path

    @classmethod
    def of(cls, client: Client, machine: Machine, scope: Scope, project: Path) -> "Target":
        """The file of one scope. Raises ValueError where the client has no such scope, or links go in circles."""
        path = client.file(machine, scope, project)
        try:
            return cls(client, machine, path.resolve())
        except (OSError, RuntimeError) as error:
            raise ValueError(f"{path}: {error}") from None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps other processes that would change it, or the receipts, from doing so meanwhile.

        Raises ValueError where that can't be had.
        """
        with hold_lock(Path(state_folder(self.machine)) / "lock"):
            yield


class Change(NamedTuple):
    """A change of a client's file that can still be made or not."""

    target: Target
    before: bytes | None
    after: bytes | None
    record: Record
    shown: tuple[int, int] | None = None
    """Where in `after` the entry stands that was put there."""
    notes: tuple[str, ...] = ()
    """What people are told of it besides."""

    @property
    def is_none(self) -> bool:
        """Whether there is nothing to change."""
        return self.before == self.after

    def make(self) -> Path | None:
        """Makes the change; the path of the backup, where there was a file. Raises ValueError where it can't."""
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
                made = sum(not folder.exists() for folder in path.parents)
                record = record._replace(made_file=True, made_folders=max(record.made_folders, made))
            if self.shown is not None:
                # Before the entry comes: a receipt without its entry counts for nothing, and what can't be kept stops
                # here. Only when an entry is gone is its receipt needed no more.
                receipts.keep(path, record)
            # The backup and the receipts have taken their time, and clients write their files often.
            write_atomically(path, self.after, self._check)
        if self.shown is None:
            receipts.keep(path, record)
        return backup

    def _check(self) -> None:
        if read_bytes(self.target.path) != self.before:
            raise ValueError(f"{self.target.path} has just been changed by another program: try again")


def install(target: Target, server: Configured, replace: bool) -> Change:
    """What puts `server` into the file.

    Raises ValueError for a file that the client does not read, and for another entry of that name which was not put
    there, or has been changed since, unless `replace` is given.
    """
    client, path = target.client, target.path
    entry = as_entry(client, server)
    before = read_bytes(path)
    entries = read_entries(client, path)
    present, record = entries.get(server.name), _record(target, entries)
    text, notes = before or b"", list[str]()
    if client.format == "json" and text.startswith(jsonc.BOM):
        text = text.removeprefix(jsonc.BOM)
        notes.append(f"its byte order mark is taken out, for which {client.title} may take the file for an empty one")
    if present == entry:
        return Change(target, before, None if before is None else text, record, notes=tuple(notes))
    known = record.entries.get(server.name)
    is_ours = known is not None and known.is_of(present)
    if server.name in entries and not replace and not is_ours:
        raise ValueError(f"{path} has another server {server.name!r}: give --replace, or another --name")
    with _named(path):
        edit = _EDITS[client.format].put(text, client, server.name, entry, known)
    if is_ours:
        notes.append(f"{server.name!r} was there with other arguments, which go; to have both give another --name")
    receipt = edit.receipt._replace(former=digest_of(present) if is_ours else "")
    record = record._replace(entries={**record.entries, server.name: receipt})
    return Change(target, before, edit.text, record, (edit.start, edit.end), tuple(notes))


def uninstall(target: Target, name: str, program: Sequence[str]) -> Change:
    """What takes the server called `name` out of the file.

    Raises ValueError for a file that the client does not read, where there is no such server, and for one that was
    not put there, or has been changed since, unless what it starts begins with `program`.
    """
    client, path = target.client, target.path
    before = read_bytes(path)
    entries = read_entries(client, path)
    if before is None or name not in entries:
        raise ValueError(f"{path} has no server {name!r}")
    record = _record(target, entries)
    known = record.entries.get(name)
    if (known is None or not known.is_of(entries[name])) and not _starts(entries[name], program):
        why = "was not put there by install" if known is None else "is not as install put it there"
        raise ValueError(f"{path}: the server {name!r} {why}: take it out by hand")
    with _named(path):
        text, left = _EDITS[client.format].take(before, client, name, record.entries)
    gone = not text and record.made_file
    return Change(target, before, None if gone else text, record._replace(entries=left))


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _record(target: Target, entries: Mapping[str, Any]) -> Record:
    """What was made in the file and is still there: others may have taken entries out, or the file itself."""
    record = Receipts(target.machine).of(target.path)
    left = {name: receipt for name, receipt in record.entries.items() if name in entries}
    if left:
        return record._replace(entries=left)
    # A change that was cut short may have made directories, and no file.
    return Record() if target.path.exists() else Record(made_folders=record.made_folders)


def _starts(entry: Any, program: Sequence[str]) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("args", []), list):
        return False
    return [entry.get("command"), *entry.get("args", [])][: len(program)] == list(program)
