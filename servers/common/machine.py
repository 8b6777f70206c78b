"""Finds the directories in which programs keep their files on each operating system."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

System = Literal["linux", "macos", "windows"]


class Machine(NamedTuple):
    """The properties of a machine that determine where programs keep their files."""

    system: System
    home: PurePath
    """The user's home directory. All paths that a `Machine` returns have the same type as this path."""
    environment: Mapping[str, str]
    packages: Sequence[str] = ()
    """The names of folders in `local() / "Packages"`, where programs from the Microsoft Store keep files."""

    def variable(self, name: str) -> PurePath | None:
        """Return the path in an environment variable; None if it is not set or the path is relative. The XDG
        specification requires to ignore relative paths."""
        path = type(self.home)(self.environment.get(name, ""))
        return path if path.is_absolute() else None

    def settings(self) -> PurePath:
        """Return the directory with the settings directories of desktop programs; Electron calls it `appData`."""
        if self.system == "windows":
            return self.variable("APPDATA") or self.home / "AppData" / "Roaming"
        if self.system == "macos":
            return self.home / "Library" / "Application Support"
        return self.variable("XDG_CONFIG_HOME") or self.home / ".config"

    def local(self) -> PurePath:
        """Return the directory on Windows for files of programs that are not copied to the user's other machines."""
        return self.variable("LOCALAPPDATA") or self.home / "AppData" / "Local"


def this_machine() -> Machine:
    """Return this machine. Raises ValueError if the user's home directory is unknown."""
    try:
        home = Path.home()
    except RuntimeError as error:
        raise ValueError(f"there is no home directory: {error}") from None
    if sys.platform == "win32":
        machine = Machine("windows", home, os.environ)
        with suppress(OSError):
            names = sorted(path.name for path in Path(machine.local(), "Packages").iterdir())
            return machine._replace(packages=names)
        return machine
    return Machine("macos" if sys.platform == "darwin" else "linux", home, os.environ)


def state_folder(machine: Machine) -> PurePath:
    """Return the directory in which the bundle keeps its own files for this user: receipts, backups, pins."""
    if machine.system == "windows":
        base = machine.local()
    elif machine.system == "macos":
        base = machine.home / "Library" / "Application Support"
    else:
        base = machine.variable("XDG_STATE_HOME") or machine.home / ".local" / "state"
    return base / "mcp-server-bundle"
