"""What was installed on this machine, so that it can be taken out again without a trace, and nothing else is.

It stands in a directory of the user's own, with the backups of the files that were changed. It holds no entry itself:
entries may have secrets.
"""

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from .clients import Machine
from .configured import read_bytes
from .edits import Receipt
from .files import write_atomically

__all__ = ["Receipts", "Record", "state_folder"]


class Record(NamedTuple):
    """What was made in one file: its entries in the order they came, and the file itself."""

    entries: Mapping[str, Receipt] = {}
    made_file: bool = False
    made_folders: int = 0
    """How many directories were made for it."""


_FILE = TypeAdapter(dict[str, Record])


def state_folder(machine: Machine) -> PurePath:
    """The directory for receipts and backups."""
    if machine.system == "windows":
        base = machine.variable("LOCALAPPDATA") or machine.home / "AppData" / "Local"
    elif machine.system == "macos":
        base = machine.home / "Library" / "Application Support"
    else:
        base = machine.variable("XDG_STATE_HOME") or machine.home / ".local" / "state"
    return base / "mcp-server-bundle"


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
