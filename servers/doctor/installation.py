"""Is the bundle installed whole: its Python, its console scripts, the libraries of each server?"""

import os
import platform
import sys
from collections.abc import Collection, Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from ..catalog import Entry
from .findings import Finding, fault, fine, warning
from .programs import environment_of, interpreter_of

__all__ = ["NAME", "Installation", "check_installation", "this_installation"]

NAME = "mcp-server-bundle"


class Installation(NamedTuple):
    """A Python, and what it knows of the bundle."""

    python: Path
    distribution: Distribution | None
    """None where the bundle runs from a directory, without being installed."""

    def pip(self, what: str) -> str:
        """The line that installs it."""
        return f"{self.python} -m pip install {what}"


def this_installation() -> Installation:
    """The one that runs."""
    try:
        return Installation(Path(sys.executable), Distribution.from_name(NAME))
    except PackageNotFoundError:
        return Installation(Path(sys.executable), None)


def check_installation(
    installation: Installation, entries: Sequence[Entry], used: Collection[str]
) -> Iterator[Finding]:
    """Looks at Python, at the console scripts, and at the libraries of the `entries`; those of the servers that are
    `used` have to be there."""
    python, distribution = installation
    if distribution is None:
        cure = f"install it: {installation.pip('-e DIRECTORY')}, with the directory that its pyproject.toml is in"
        yield warning(str(python), "the bundle runs from a directory and is not installed in this Python", cure)
        return
    yield _python(python, distribution)
    yield from _scripts(installation, distribution)
    for entry in entries:
        if entry.extra is not None:
            yield _extra(installation, entry.name, entry.extra, entry.name in used)


def _python(python: Path, distribution: Distribution) -> Finding:
    running, wanted = platform.python_version(), distribution.metadata["Requires-Python"] or ""
    if SpecifierSet(wanted).contains(running, prereleases=True):
        return fine(str(python), f"Python {running}, with {NAME} {distribution.version}")
    cure = "install a newer Python, and the bundle with that one"
    return fault(str(python), f"this is Python {running}, the bundle needs {wanted}", cure)


def _scripts(installation: Installation, distribution: Distribution) -> Iterator[Finding]:
    python = installation.python
    again = installation.pip(f"--force-reinstall --no-deps '{NAME}=={distribution.version}'")
    cure = f"write the scripts again, from where the bundle came from: {again}"
    for name in sorted(script.name for script in distribution.entry_points.select(group="console_scripts")):
        path = _script(distribution, name) or python.parent / name
        if not path.is_file():
            yield fault(str(path), f"the console script {name} is missing", cure)
            continue
        interpreter = interpreter_of(path)
        if interpreter is not None and not interpreter.exists():
            yield fault(str(path), f"it starts {interpreter}, which does not exist", cure)
        elif interpreter is not None and not environment_of(interpreter).samefile(environment_of(python)):
            yield fault(str(path), f"it starts another Python, {interpreter}, and not {python}", cure)


def _script(distribution: Distribution, name: str) -> Path | None:
    """Where the script was installed: beside the interpreter, or in the directory of the user."""
    for file in distribution.files or ():
        if file.name in (name, f"{name}.exe"):
            return Path(os.path.normpath(str(distribution.locate_file(file))))
    return None


def _extra(installation: Installation, server: str, extra: str, used: bool) -> Finding:
    lacking = sorted(set(_lacking(installation.distribution, extra)))
    if not lacking:
        return fine(server, f"the libraries of its extra {extra!r} are installed")
    cure = installation.pip(f"'{NAME}[{extra}]'")
    what = f"its extra {extra!r} is not installed: {', '.join(lacking)}"
    return (fault if used else warning)(server, what, cure)


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
