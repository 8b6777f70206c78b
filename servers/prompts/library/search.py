"""Search of prompts by words, the best matches first.

Parsing the YAML of thousands of files would take seconds. So words are searched in the files' bytes, which a library
keeps in memory, and only the results are parsed. Without an index, 10,000 prompts take 30 to 100 ms.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from servers.prompts.errors import PromptError
from servers.prompts.format.definitions import Prompt
from servers.prompts.library.libraries import Libraries

_MAX_WORDS = 20
_EXACT, _BEGINS, _NAMED, _HEAD, _WITHIN = 1_000, 100, 50, 20, 5
_INNER = (b"\narguments:", b"\nmessages:", b"\nmetadata:")
"""Keys of the front matter whose values do not describe the prompt."""
_NEXT = re.compile(rb"\n[a-z]")
_SPACED = bytes(byte if byte >= 0x80 or chr(byte).isalnum() else 0x20 for byte in range(256))


class Matches(NamedTuple):
    """The result of a search."""

    prompts: list[Prompt]
    """The prompts, best first."""
    total: int
    """The number of all matches, including prompts whose file may turn out to be broken."""


class _Word(NamedTuple):
    text: str
    """The word, case-folded."""
    form: bytes
    others: tuple[bytes, ...]
    """Its forms in a file whose ASCII letters are in lowercase, if it has non-ASCII letters."""
    plain: tuple[bytes, ...]
    """The same, with spaces instead of characters other than letters and digits."""


def search(libraries: Libraries, query: str, limit: int) -> Matches:
    """Return the prompts that contain words of the query. Those with more words come first, then those with words in
    the name, in title, description and tags, or in the rest of the file. Without words, return all prompts by name.
    Blocks."""
    words = [_make_word(form) for form in dict.fromkeys(query.casefold().split()[:_MAX_WORDS])]
    groups: dict[int, list[str]] = {} if words else {0: libraries.names}
    for name in libraries.names if words else ():
        data, folded, count = _read_lower(libraries, name), name.casefold(), 0
        for word in words:
            # This line takes most of the time of a search.
            if (
                word.form in data
                or word.text in folded
                or (word.others and any(form in data for form in word.others))
            ):
                count += 1
        if count:
            groups.setdefault(count, []).append(name)
    prompts: list[Prompt] = []
    total = sum(map(len, groups.values()))
    for name in _order(libraries, groups, words):
        if len(prompts) == limit:
            break
        try:
            prompts.append(libraries.prompt(name))
        except PromptError:
            total -= 1
    return Matches(prompts, total)


def _order(libraries: Libraries, groups: Mapping[int, list[str]], words: list[_Word]) -> Iterator[str]:
    """Yield the names, best first."""
    # Lazily, so that only the requested names, and those with as many words, are scored.
    for count in sorted(groups, reverse=True):
        names = groups[count]
        yield from sorted(names, key=lambda name: (-_score(libraries, name, words), name)) if words else names


def _make_word(text: str) -> _Word:
    # bytes.lower() supports only ASCII, so other letters are searched in each of their forms.
    forms = [form.encode("utf-8", "replace").lower() for form in (text, text.upper(), text.capitalize())]
    others = set(forms) - {forms[0]}
    return _Word(text, forms[0], tuple(others), tuple({form.translate(_SPACED) for form in forms}))


def _read_lower(libraries: Libraries, name: str) -> bytes:
    """Return the contents of the file in lowercase; empty if it has been deleted."""
    try:
        return libraries.library(name).source(name).lower()
    except PromptError:
        return b""


def _score(libraries: Libraries, name: str, words: list[_Word]) -> int:
    """Return the score for the positions of the words."""
    head, folded = _find_head(_read_lower(libraries, name)), name.casefold()
    phrase = "-".join(word.text for word in words)
    score = _EXACT * (folded == phrase) + _BEGINS * folded.startswith(phrase)
    for word in words:
        if word.text in folded:
            score += _NAMED
        elif any(b" " + form in head for form in word.plain):
            score += _HEAD
        elif any(form in head for form in word.plain):
            score += _WITHIN
    return score


def _find_head(data: bytes) -> bytes:
    """Return the part of a file, already in lowercase, that describes its prompt: letters, digits and spaces.

    That is its front matter without arguments and messages, or its first line if it has no front matter.
    """
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    end = data.find(b"\n---", 3) if data.startswith(b"---") else -1
    head = data[3:end] if end > 0 else data.partition(b"\n")[0]
    for key in _INNER:
        at = head.find(key)
        if at >= 0:
            after = _NEXT.search(head, at + 1)
            head = head[:at] + (head[after.start() :] if after else b"")
    return b" " + head.translate(_SPACED)
