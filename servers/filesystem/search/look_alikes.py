"""Suggests names for a path that does not exist: a name that looks like the requested one, or the most similar names.

Different names may look alike: macOS puts a narrow no-break space into screenshot names and decomposes accents, word
processors curl quotes, and a model writes the plain form of each.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from servers.common.files.rooted_files import RootedFiles
from shared.program.files.entries import Place
from shared.program.files.system import SYSTEM
from shared.text import quote_name

from ..errors import FilesError

MAX_NAMES = 10_000
"""Maximum number of names in a directory that are compared."""
_MAX_SHOWN = 3
"""Maximum number of names or paths that are suggested."""
_PLAIN_MARKS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc`\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)
_INVISIBLE = "[\u00ad\u200b-\u200f\u2060\ufeff]"


def look_alike(name: str) -> str:
    """Return the common form of all names that look like this one: NFKC, case-folded, with plain quotes, dashes and
    spaces.
    """
    from unicodedata import normalize

    folded = normalize("NFKC", normalize("NFKC", name.translate(_PLAIN_MARKS)).casefold())
    return " ".join(re.sub(_INVISIBLE, "", folded).translate(_PLAIN_MARKS).split())


def suggest_path(rooted: RootedFiles, place: Place) -> str:
    """Return a suggestion for `place`, which does not exist: a sentence with the URI of the only path that looks like
    its path, or with the names most similar to its first missing component; "" if none is similar.
    """
    parent = place._replace(parts=())
    for name in place.parts:
        try:
            rooted.stat(parent.child(name))
            exists = True
        except FilesError as error:
            exists = error.code != "not_found"
        if exists:
            parent = parent.child(name)
            continue
        names: list[str] = []
        # No name is suggested if the directory can't be read.
        with suppress(FilesError), rooted.open_directory(parent) as directory, SYSTEM.scan(directory) as entries:
            listed = sorted(entry.name for entry in islice(entries, MAX_NAMES))
            names = [other for other in listed if not rooted.roots.denies(parent.child(other))]
        alike = [other for other in names if look_alike(other) == look_alike(name)]
        if len(alike) != 1:
            return _nearest(rooted, parent, name, alike or names)
        parent = parent.child(alike[0])
    return f"Did you mean {rooted.roots.uri(parent)}?" if parent.parts != place.parts else ""


def _nearest(rooted: RootedFiles, directory: Place, name: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    folded = {look_alike(other): other for other in reversed(names)}
    nearest = get_close_matches(look_alike(name), folded, _MAX_SHOWN)
    if len(folded) < len(names) and len(nearest) == 1:
        # These names look alike, so only their URIs tell them apart.
        uris = ", ".join(rooted.roots.uri(directory.child(other)) for other in names[:_MAX_SHOWN])
        return f"Did you mean one of {uris}?"
    shown = ", ".join(quote_name(folded[other]) for other in nearest)
    return f"The nearest names there: {shown}." if shown else ""
