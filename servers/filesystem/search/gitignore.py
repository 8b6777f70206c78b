"""What `.gitignore` files say is no part of the source: build products, dependencies, caches.

As in git, each file speaks for its directory and what is below, the innermost that says anything decides, and what is
in an ignored directory is ignored with it. Unlike git, this asks no repository to be there, but where one begins
inside another, the outer rules end. The files are found in the tree itself, so anybody may have written them: they
are bounded in size, and matched by a linear-time engine.
"""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from servers.common.files.rooted_files import RootedFiles
from servers.filesystem.errors import FilesError
from shared.program.files.entries import Place

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


FILE = ".gitignore"
REPOSITORY = ".git"
MAX_BYTES = 65_536
"""Bytes of a `.gitignore` that are read; the rest says nothing."""
_TOGETHER = 100
"""Lines that are compiled into one automaton: the engine refuses one that is too large."""


class Rules(NamedTuple):
    """The rules that hold in one directory: those of each level above, and the directory's path below that level."""

    levels: tuple[tuple["GitIgnoreSpec", str], ...] = ()

    def ignore(self, name: str, is_directory: bool) -> bool:
        """Whether the entry of that name in this directory is ignored."""
        for spec, prefix in reversed(self.levels):
            path = prefix + name + ("/" if is_directory else "")
            if not path.isascii():
                # The bytes of a name that are no UTF-8 are lone surrogates, which the engine does not take.
                path = path.encode("utf-8", "replace").decode()
            said = spec.check_file(path).include
            if said is not None:
                return said
        return False

    def below(self, name: str) -> "Rules":
        """The rules in a directory of this one, before its own are read."""
        return Rules(tuple((spec, f"{prefix}{name}/") for spec, prefix in self.levels))

    def read(self, names: Sequence[str], read: Callable[[str, int], bytes]) -> "Rules":
        """The rules in this directory, with its own: it has the entries `names`, which `read` reads up to a limit."""
        outer = () if REPOSITORY in names else self.levels
        if FILE not in names:
            return Rules(outer)
        try:
            data = read(FILE, MAX_BYTES)
        except FilesError:
            return Rules(outer)
        return Rules((*outer, *((spec, "") for spec in _parsed(data))))


def rules_above(beneath: RootedFiles, place: Place) -> Rules:
    """What the directories above `place` say about it, from its root on.

    Nothing where they ignore `place` itself: whoever begins there wants to see it.
    """
    rules = Rules()
    for depth, name in enumerate(place.parts):
        above = place._replace(parts=place.parts[:depth])
        names: list[str] = []
        for file in (FILE, REPOSITORY):
            with suppress(FilesError):
                beneath.stat(above.child(file), follow=False)
                names.append(file)
        rules = rules.read(names, partial(_read, beneath, above))
        rules = Rules() if rules.ignore(name, is_directory=True) else rules.below(name)
    return rules


def _read(beneath: RootedFiles, directory: Place, name: str, limit: int) -> bytes:
    with beneath.open_file(directory.child(name)) as handle:
        return os.read(handle.descriptor, limit)


def _parsed(data: bytes) -> list["GitIgnoreSpec"]:
    """What the lines say, in parts of which a later one overrules those before it."""
    lines = iter(data.decode("utf-8", "replace").splitlines())
    specs: list[GitIgnoreSpec] = []
    while some := list(islice(lines, _TOGETHER)):
        together = _compiled(some)
        # As in git, a line that means nothing is passed over, and the others count.
        found = [together] if together else [_compiled([line]) for line in some]
        specs += [spec for spec in found if spec]
    return specs


def _compiled(lines: list[str]) -> "GitIgnoreSpec | None":
    try:
        import re2
        from pathspec import GitIgnoreSpec
    except ImportError:
        reason = "what .gitignore files say can't be read without the packages pathspec and google-re2"
        suggestion = "Install the extra 'filesystem', or set includeIgnored."
        raise FilesError("not_installed", "", reason, suggestion) from None
    try:
        return GitIgnoreSpec.from_lines(lines, backend="re2")
    except (ValueError, re.error, re2.error):
        return None
