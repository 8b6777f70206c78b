"""Finds prompts by words, the best matches first.

Parsing the YAML of thousands of files would take seconds. So words are searched in the bytes of the files, which a
library keeps in memory, and only the results are parsed. There is no index: 10,000 prompts take 30 to 100 ms.
"""

import re
from typing import NamedTuple

from ..errors import PromptError
from ..format.definitions import Prompt
from .libraries import Libraries

_MAX_WORDS = 20
_EXACT, _BEGINS_NAME, _IN_NAME, _BEGINS_WORD, _WITHIN_WORD = 1_000, 100, 50, 20, 5
"""The scores of a name that is the query or begins with it, and of each word of the query that is in the name, at the
beginning of a word in the description, or within one."""
_IGNORED_KEYS = (b"\narguments:", b"\nmessages:", b"\nmetadata:")
"""The beginnings of lines with keys of the front matter whose values do not describe the prompt."""
_NEXT_KEY = re.compile(rb"\n[a-z]")
_TO_SPACES = bytes(byte if byte >= 0x80 or chr(byte).isalnum() else 0x20 for byte in range(256))
"""A table for `bytes.translate` that replaces ASCII characters other than letters and digits by spaces."""


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
    """The UTF-8 bytes of the word, with ASCII letters in lower case."""
    other_forms: tuple[bytes, ...]
    """The same for the word in capitals and capitalized, where they differ because of non-ASCII letters."""
    plain_forms: tuple[bytes, ...]
    """All forms, with spaces instead of ASCII characters other than letters and digits."""


def search(libraries: Libraries, query: str, limit: int) -> Matches:
    """Return the prompts that contain words of the query; if the query is empty, return all prompts by name. Blocks.

    Prompts with more of the words come first; among them, those with words in their names, and then those with words
    in title, description and tags.
    """
    words: list[_Word] = []
    for text in dict.fromkeys(query.casefold().split()[:_MAX_WORDS]):
        # bytes.lower() supports only ASCII, so other letters are searched in each of their forms.
        forms = [form.encode("utf-8", "replace").lower() for form in (text, text.upper(), text.capitalize())]
        plain_forms = tuple({form.translate(_TO_SPACES) for form in forms})
        words.append(_Word(text, forms[0], tuple(set(forms) - {forms[0]}), plain_forms))
    groups: dict[int, list[str]] = {} if words else {0: libraries.names}
    for name in libraries.names if words else ():
        data, folded, count = _read_lower(libraries, name), name.casefold(), 0
        for word in words:
            # This condition takes most of the time of a search.
            if (
                word.form in data
                or word.text in folded
                or (word.other_forms and any(form in data for form in word.other_forms))
            ):
                count += 1
        if count:
            groups.setdefault(count, []).append(name)
    prompts: list[Prompt] = []
    total = sum(map(len, groups.values()))
    # This is a generator, so that groups whose prompts are not needed are not scored.
    ordered = (
        name
        for count in sorted(groups, reverse=True)
        for name in sorted(groups[count], key=lambda name: (-_score(libraries, name, words), name))
    )
    for name in ordered if words else libraries.names:
        if len(prompts) == limit:
            break
        try:
            prompts.append(libraries.prompt(name))
        except PromptError:
            total -= 1
    return Matches(prompts, total)


def _read_lower(libraries: Libraries, name: str) -> bytes:
    """Return the contents of the file in lowercase; empty if it has been deleted."""
    try:
        return libraries.library(name).source(name).lower()
    except PromptError:
        return b""


def _score(libraries: Libraries, name: str, words: list[_Word]) -> int:
    """Return the score of a prompt for the positions of the words: in its name, or in the part of its file that
    describes it, which is the front matter without `_IGNORED_KEYS`, or else the first line."""
    data, folded = _read_lower(libraries, name).removeprefix(b"\xef\xbb\xbf").lstrip(), name.casefold()
    end = data.find(b"\n---", 3) if data.startswith(b"---") else -1
    head = data[3:end] if end > 0 else data.partition(b"\n")[0]
    for key in _IGNORED_KEYS:
        start = head.find(key)
        if start >= 0:
            after = _NEXT_KEY.search(head, start + 1)
            head = head[:start] + (head[after.start() :] if after else b"")
    head = b" " + head.translate(_TO_SPACES)
    phrase = "-".join(word.text for word in words)
    score = _EXACT * (folded == phrase) + _BEGINS_NAME * folded.startswith(phrase)
    for word in words:
        if word.text in folded:
            score += _IN_NAME
        elif any(b" " + form in head for form in word.plain_forms):
            score += _BEGINS_WORD
        elif any(form in head for form in word.plain_forms):
            score += _WITHIN_WORD
    return score
