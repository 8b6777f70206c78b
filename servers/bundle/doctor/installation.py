"""Checks of the installation: its Python, its console scripts, and the libraries of each server."""

import os
import platform
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from servers.catalog import Entry
from shared.program import installation
from shared.program.installation import NAME

from .findings import Finding, fault, fine, warning

_SHEBANG_BYTES = 4_096
# If the path of the interpreter is too long or has spaces, pip and uv write a shell script, whose second line starts
# the interpreter.
_SHEBANG = re.compile(rb"#!\s*(/[^\r\n]*?)(?: -[^\r\n]*)?\r?\n(?:'''exec' (?:\"([^\"\n]+)\"|'([^'\n]+)'|(\S+)) )?")


class CheckedInstallation(NamedTuple):
    """A Python interpreter, and the metadata of the bundle that is installed in it."""

    python: Path
    distribution: Distribution | None
    """None if the bundle runs from a directory without being installed."""

    def install_command(self, *extras: str, reinstall: bool = False) -> str:
        """Return the command that adds extras to the installation, or reinstalls it."""
        if self.distribution is None:
            return installation.this_installation().install_command(*extras)
        site = Path(str(self.distribution.locate_file("")))
        return installation.Installation.from_site(self.python, site).install_command(*extras, reinstall=reinstall)


def this_installation() -> CheckedInstallation:
    """Return the running installation."""
    try:
        return CheckedInstallation(Path(sys.executable), Distribution.from_name(NAME))
    except PackageNotFoundError:
        return CheckedInstallation(Path(sys.executable), None)


def check_installation(
    bundle: CheckedInstallation, entries: Sequence[Entry], used: Collection[str]
) -> Iterator[Finding]:
    """Check Python, the console scripts, and the libraries of the servers `entries`. A missing library is a fault if
    the server is one of those that are `used`, else a warning."""
    python, distribution = bundle
    if distribution is None:
        what = "the bundle runs from a directory, and is not installed in this Python"
        yield warning(str(python), what, f"install it: {bundle.install_command('all')}")
        return
    running, required = platform.python_version(), distribution.metadata["Requires-Python"] or ""
    if SpecifierSet(required).contains(running, prereleases=True):
        yield fine(str(python), f"Python {running}, with {NAME} {distribution.version}")
    else:
        fix = "install a newer Python, and the bundle in it"
        yield fault(str(python), f"this is Python {running}, but the bundle needs {required}", fix)
    broken_scripts: dict[str, list[str]] = {}
    for name in sorted(script.name for script in distribution.entry_points.select(group="console_scripts")):
        # The metadata says where the script is; by default it is next to the interpreter.
        files = [file for file in distribution.files or () if file.name in (name, f"{name}.exe")]
        path = Path(os.path.normpath(str(distribution.locate_file(files[0])))) if files else python.parent / name
        reason = _script_fault(path, bundle.python)
        if reason:
            broken_scripts.setdefault(reason, []).append(name)
    where = f"console scripts of {bundle.python}"
    for reason, names in broken_scripts.items():
        yield fault(
            where, f"{reason}: {', '.join(names)}", f"reinstall them: {bundle.install_command(reinstall=True)}"
        )
    for entry in entries:
        if entry.extra is not None:
            missing = sorted(set(_missing_requirements(distribution, entry.extra)))
            if missing:
                what = f"its extra {entry.extra!r} is not installed: {', '.join(missing)}"
                yield (fault if entry.name in used else warning)(
                    entry.name, what, bundle.install_command(entry.extra)
                )
            else:
                yield fine(entry.name, f"the libraries of its extra {entry.extra!r} are installed")


def _script_fault(script: Path, python: Path) -> str:
    if not script.is_file():
        return "they are missing"
    interpreter = interpreter_of(script)
    if interpreter is None:
        return ""
    if not interpreter.exists():
        return f"the programs start {interpreter}, which does not exist"
    same = directory_of(interpreter).samefile(directory_of(python))
    return "" if same else f"the programs start another Python, {interpreter}"


def _missing_requirements(distribution: Distribution | None, extra: str) -> Iterator[str]:
    """Yield the libraries of an extra that are missing or have an unsupported version, including those of the extras
    that these libraries need."""
    for line in (distribution.requires if distribution else None) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        # Skip requirements that do not depend on the extra: every command, including this one, needs them.
        if marker is None or not marker.evaluate({"extra": extra}) or marker.evaluate({"extra": ""}):
            continue
        try:
            installed = Distribution.from_name(requirement.name)
        except PackageNotFoundError:
            yield requirement.name
            continue
        if not requirement.specifier.contains(installed.version, prereleases=True):
            yield f"{requirement.name}{requirement.specifier} ({installed.version} is installed)"
        for inner in requirement.extras:
            yield from _missing_requirements(installed, inner)


def interpreter_of(script: Path) -> Path | None:
    """Return the Python that a console script starts; None if it is not a Python script, or can't be read."""
    try:
        if not script.is_file():
            return None
        with script.open("rb") as file:
            shebang = _SHEBANG.match(file.read(_SHEBANG_BYTES))
    except OSError:
        return None
    if shebang is None:
        return None
    path = Path((shebang[2] or shebang[3] or shebang[4] or shebang[1]).decode("utf-8", "surrogateescape"))
    return path if path.name.startswith(("python", "pypy")) else None


def directory_of(program: Path) -> Path:
    """Return the directory that contains `program`. Links are not resolved: those in a virtual environment lead out
    of it."""
    return program.absolute().parent
