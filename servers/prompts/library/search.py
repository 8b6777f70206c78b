"""Finding prompts by words, best first.

Reading the YAML of thousands of files would take seconds. So words are looked for in the bytes of the files, which a
library holds anyway, and only what is given back is read: 10,000 prompts take 30 to 100 ms, and nothing is kept.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from servers.prompts.errors import PromptError
from servers.prompts.format.definitions import Prompt
from servers.prompts.library.libraries import Libraries

_MOST_WORDS = 20
_EXACT, _BEGINS, _NAMED, _HEAD, _WITHIN = 1_000, 100, 50, 20, 5
_INNER = (b"\narguments:", b"\nmessages:", b"\nmetadata:")
"""Keys of the front matter that begin what does not describe the prompt."""
_NEXT = re.compile(rb"\n[a-z]")
_SPACED = bytes(one if one >= 0x80 or chr(one).isalnum() else 0x20 for one in range(256))


class Matches(NamedTuple):
    """What was found."""

    prompts: list[Prompt]
    """Best first."""
    total: int
    """Of all that match; one whose file turns out to be broken is counted."""


class _Word(NamedTuple):
    text: str
    """Folded."""
    form: bytes
    others: tuple[bytes, ...]
    """As it may be in a file whose ASCII letters are small, where it has other letters."""
    plain: tuple[bytes, ...]
    """The same, with spaces for what is no letter or digit."""


def search(libraries: Libraries, query: str, most: int) -> Matches:
    """The prompts that have words of the query: those with more of them first, then by where they are: in the name,
    in title, description and tags, or in the rest of the file. Without a word, all by name. Blocks."""
    words = [_make_word(one) for one in dict.fromkeys(query.casefold().split()[:_MOST_WORDS])]
    groups: dict[int, list[str]] = {} if words else {0: libraries.names}
    for name in libraries.names if words else ():
        data, folded, count = _read_lower(libraries, name), name.casefold(), 0
        for word in words:
            # This line is the time of a search.
            if word.form in data or word.text in folded or (word.others and any(one in data for one in word.others)):
                count += 1
        if count:
            groups.setdefault(count, []).append(name)
    prompts: list[Prompt] = []
    total = sum(map(len, groups.values()))
    for name in _order(libraries, groups, words):
        if len(prompts) == most:
            break
        try:
            prompts.append(libraries.prompt(name))
        except PromptError:
            total -= 1
    return Matches(prompts, total)


def _order(libraries: Libraries, groups: Mapping[int, list[str]], words: list[_Word]) -> Iterator[str]:
    """The names, best first. Only those are looked at closely that are asked for, or have as many words."""
    for count in sorted(groups, reverse=True):
        found = groups[count]
        yield from sorted(found, key=lambda name: (-_score(libraries, name, words), name)) if words else found


def _make_word(text: str) -> _Word:
    # bytes.lower() knows ASCII only, so that other letters are looked for in each of their forms.
    forms = [one.encode("utf-8", "replace").lower() for one in (text, text.upper(), text.capitalize())]
    others = set(forms) - {forms[0]}
    return _Word(text, forms[0], tuple(others), tuple({one.translate(_SPACED) for one in forms}))


def _read_lower(libraries: Libraries, name: str) -> bytes:
    """What is in the file, in small letters; nothing where it is gone by now."""
    try:
        return libraries.library(name).source(name).lower()
    except PromptError:
        return b""


def _score(libraries: Libraries, name: str, words: list[_Word]) -> int:
    """How good the places of the words are."""
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
    """What a file, in small letters, says of its prompt: letters, digits and spaces.

    That is its front matter without arguments and messages, or its first line where it has none.
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
