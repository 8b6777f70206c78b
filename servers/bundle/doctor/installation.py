"""Is the bundle installed whole: its Python, its console scripts, the libraries of each server?"""

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

_HEAD = 4_096
# Where the path of the interpreter is too long or has spaces, pip and uv have the shell start it, in the second line.
_SHEBANG = re.compile(rb"#!\s*(/[^\r\n]*?)(?: -[^\r\n]*)?\r?\n(?:'''exec' (?:\"([^\"\n]+)\"|'([^'\n]+)'|(\S+)) )?")


class Installation(NamedTuple):
    """A Python, and what it knows of the bundle."""

    python: Path
    distribution: Distribution | None
    """None where the bundle runs from a directory, without being installed."""

    def line(self, *extras: str, again: bool = False) -> str:
        """The command that adds extras to it, or installs it anew."""
        if self.distribution is None:
            return installation.this_installation().line(*extras)
        site = Path(str(self.distribution.locate_file("")))
        return installation.Installation.in_site(self.python, site).line(*extras, again=again)


def this_installation() -> Installation:
    """The one that runs."""
    try:
        return Installation(Path(sys.executable), Distribution.from_name(NAME))
    except PackageNotFoundError:
        return Installation(Path(sys.executable), None)


def check_installation(bundle: Installation, entries: Sequence[Entry], used: Collection[str]) -> Iterator[Finding]:
    """Looks at Python, at the console scripts, and at the libraries of the `entries`; those of the servers that are
    `used` have to be there."""
    python, distribution = bundle
    if distribution is None:
        what = "the bundle runs from a directory and is not installed in this Python"
        yield warning(str(python), what, f"install it: {bundle.line('all')}")
        return
    running, wanted = platform.python_version(), distribution.metadata["Requires-Python"] or ""
    if SpecifierSet(wanted).contains(running, prereleases=True):
        yield fine(str(python), f"Python {running}, with {NAME} {distribution.version}")
    else:
        fix = "install a newer Python, and the bundle with that one"
        yield fault(str(python), f"this is Python {running}, the bundle needs {wanted}", fix)
    wrong: dict[str, list[str]] = {}
    for name in sorted(script.name for script in distribution.entry_points.select(group="console_scripts")):
        # It stands beside the interpreter, or in the directory of the user.
        files = [file for file in distribution.files or () if file.name in (name, f"{name}.exe")]
        path = Path(os.path.normpath(str(distribution.locate_file(files[0])))) if files else python.parent / name
        reason = _wrong(path, bundle.python)
        if reason:
            wrong.setdefault(reason, []).append(name)
    where = f"console scripts of {bundle.python}"
    for reason, names in wrong.items():
        yield fault(where, f"{reason}: {', '.join(names)}", f"write them again: {bundle.line(again=True)}")
    for entry in entries:
        if entry.extra is not None:
            lacking = sorted(set(_lacking(distribution, entry.extra)))
            if lacking:
                what = f"its extra {entry.extra!r} is not installed: {', '.join(lacking)}"
                yield (fault if entry.name in used else warning)(entry.name, what, bundle.line(entry.extra))
            else:
                yield fine(entry.name, f"the libraries of its extra {entry.extra!r} are installed")


def _wrong(script: Path, python: Path) -> str:
    if not script.is_file():
        return "they are missing"
    interpreter = interpreter_of(script)
    if interpreter is None:
        return ""
    if not interpreter.exists():
        return f"they start {interpreter}, which does not exist"
    same = environment_of(interpreter).samefile(environment_of(python))
    return "" if same else f"they start another Python, {interpreter}"


def _lacking(distribution: Distribution | None, extra: str) -> Iterator[str]:
    """The libraries of an extra that are missing or too old, with what their own extras need."""
    for line in (distribution.requires if distribution else None) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        # What is needed without the extra is needed for anything, this command included.
        if marker is None or not marker.evaluate({"extra": extra}) or marker.evaluate({"extra": ""}):
            continue
        try:
            installed = Distribution.from_name(requirement.name)
        except PackageNotFoundError:
            yield requirement.name
            continue
        if not requirement.specifier.contains(installed.version, prereleases=True):
            yield f"{requirement.name}{requirement.specifier} (there is {installed.version})"
        for inner in requirement.extras:
            yield from _lacking(installed, inner)


def interpreter_of(script: Path) -> Path | None:
    """The Python that a console script starts; None where it is no script, or one of another kind."""
    try:
        if not script.is_file():
            return None
        with script.open("rb") as file:
            found = _SHEBANG.match(file.read(_HEAD))
    except OSError:
        return None
    if found is None:
        return None
    path = Path((found[2] or found[3] or found[4] or found[1]).decode("utf-8", "surrogateescape"))
    return path if path.name.startswith(("python", "pypy")) else None


def environment_of(program: Path) -> Path:
    """The directory of the environment that a program is in: without links, which lead out of it."""
    return program.absolute().parent
