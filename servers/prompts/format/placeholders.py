"""Placeholders: what each host puts in the place of `$1`, `$ARGUMENTS` and the like, and the arguments they make.

A host takes one text after a command's name and splits it into words; a client of MCP gives arguments by name. So a
text that numbers its words without a gap has an argument for each. Any other text with placeholders has one argument,
`arguments`, which is split as the host splits it. Nothing is executed (`!`) or read (`@`), and what a user gives is
never searched for placeholders.

The rules of Claude Code are those that its version 2.1.330 was seen to follow; those of Gemini CLI and VS Code are
documented. Codex's and opencode's are documented in part, and otherwise those of programs that follow them.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from servers.prompts.format.definitions import Argument, Prompt, Syntax

_ALL = "arguments"
_MOST_WORDS = 20
"""Words that have an argument each."""

_CLAUDE = r"(\\*)\$(?:ARGUMENTS(?:\[([0-9]{1,4})\])?|([0-9]{1,4})(?!\w)|(%s)(?!\w))"
_NO_NAME = "(?!)"
_CODEX_WORDS = re.compile(r"\$\$|\$(ARGUMENTS|[1-9])")
_CODEX_NAMES = re.compile(r"\$\$|\$(?!ARGUMENTS(?![A-Z0-9_]))([A-Z][A-Z0-9_]*)")
_OPENCODE = re.compile(r"\$(ARGUMENTS|[0-9]{1,4})")
_VSCODE = re.compile(r"\$\{input:([\w-]{1,64})(?::([^{}]{0,500}))?\}")
_GEMINI = re.compile(r"\{\{args\}\}")
_HINT = re.compile(r"<([^<>]{1,100})>|\[([^\[\]]{1,100})\]|(\S{1,100})")


class Asked(NamedTuple):
    """The arguments that a text asks for."""

    arguments: tuple[Argument, ...] = ()
    words: tuple[str, ...] = ()
    """Those that are words, in their order; none where one argument has all words."""


def find_arguments(text: str, syntax: Syntax, hint: str = "", names: Sequence[str] = ()) -> Asked:
    """The arguments of a text; `names` are those that its front matter declares, which Claude Code alone knows."""
    if syntax == "claude":
        if names:
            return Asked(tuple(Argument(name) for name in names), tuple(names))
        places = [one for one in re.finditer(_CLAUDE % _NO_NAME, text) if len(one[1]) % 2 == 0]
        return _ask_for_words([one[2] or one[3] for one in places], 0, hint)
    if syntax == "codex":
        named = filter(None, (one[1] for one in _CODEX_NAMES.finditer(text)))
        if arguments := tuple(Argument(name) for name in dict.fromkeys(named)):
            return Asked(arguments)
        return _ask_for_words([one[1] for one in _CODEX_WORDS.finditer(text) if one[1]], 1, hint)
    if syntax == "opencode":
        return _ask_for_words([one[1] for one in _OPENCODE.finditer(text)], 1, hint)
    if syntax == "vscode":
        described: dict[str, str | None] = {}
        for one in _VSCODE.finditer(text):
            described[one[1]] = described.get(one[1]) or one[2]
        return Asked(tuple(Argument(name, description=said) for name, said in described.items()))
    return Asked((Argument(_ALL),) if syntax == "gemini" and _GEMINI.search(text) else ())


def _ask_for_words(places: Sequence[str | None], first: int, hint: str) -> Asked:
    """The arguments of a text with these places; the first word has the number `first`, and another place is for all
    words."""
    numbers = sorted({int(place) for place in places if place and place.isdecimal()})
    numbered = all(place and place.isdecimal() for place in places)
    # Prices, and the fields of an awk program, are rarely numbered without a gap.
    if numbered and numbers and numbers == [*range(first, first + len(numbers))] and len(numbers) <= _MOST_WORDS:
        written = [one[0] for one in _HINT.finditer(hint)]
        hinted = [re.sub(r"[^A-Za-z0-9_]+", "_", one.strip("<>[].… ")).strip("_")[:64] for one in written]
        fits = len(hinted) == len(numbers) == len(set(hinted)) and all(hinted)
        words = tuple(hinted) if fits else tuple(f"arg{number}" for number in numbers)
        needed = {word for word, one in zip(words, written, strict=False) if fits and one.startswith("<")}
        return Asked(tuple(Argument(word, required=word in needed) for word in words), words)
    if not places and not hint:
        return Asked()
    return Asked((Argument(_ALL, description=hint or None, required=hint.startswith("<") and "[" not in hint),))


def fill_placeholders(text: str, prompt: Prompt, values: Mapping[str, Any]) -> Iterator[str]:
    """The pieces of a text of the prompt, with these values of arguments in the places for them."""
    given = {name: str(value) for name, value in values.items() if value not in (None, "")}
    if prompt.words:
        words = [given.get(name) for name in prompt.words]
        everything = " ".join(filter(None, words))
    else:
        everything = given.get(_ALL, "")
        words = [*_split(everything)]
    return _FILL[prompt.syntax](text, _Given(everything, words, given), prompt)


class _Given(NamedTuple):
    """What a user gave."""

    everything: str
    words: Sequence[str | None]
    """None for a word that was left out before another."""
    named: Mapping[str, str]

    def word(self, index: int) -> str | None:
        """The word at an index from 0; None where it was not given."""
        return self.words[index] if 0 <= index < len(self.words) else None


def _split(text: str) -> list[str]:
    """The words of a text, as a shell would have them; one, where a quotation has no end."""
    try:
        return shlex.split(text)
    except ValueError:
        return [text]


def _fill_claude(text: str, given: _Given, prompt: Prompt) -> Iterator[str]:
    names = "|".join(map(re.escape, prompt.words)) if prompt.declared else _NO_NAME
    replaced, end = False, 0
    for one in re.finditer(_CLAUDE % names, text):
        slashes, index, name = one[1], one[2] or one[3], one[4]
        value: str | None
        if len(slashes) % 2:
            slashes, value = slashes[1:], one[0][len(slashes) :]
        elif name:
            value = given.named.get(name, "")
        else:
            value = given.everything if index is None else given.word(int(index))
        # A price keeps its dollar: a number without a word is no place.
        if value is None:
            continue
        replaced |= len(one[1]) % 2 == 0
        yield f"{text[end : one.start()]}{slashes}"
        yield value
        end = one.end()
    yield text[end:]
    if given.everything and not replaced:
        yield f"\n\nARGUMENTS: {given.everything}"


def _fill_codex(text: str, given: _Given, prompt: Prompt) -> Iterator[str]:
    named = bool(prompt.arguments) and not prompt.words and prompt.arguments[0].name != _ALL
    if not (given.named if named else given.everything):
        yield text
        return
    end = 0
    for one in (_CODEX_NAMES if named else _CODEX_WORDS).finditer(text):
        if one[1] is None or (named and one[1] not in given.named):
            continue
        yield text[end : one.start()]
        if named:
            yield given.named[one[1]]
        else:
            yield given.everything if one[1] == "ARGUMENTS" else given.word(int(one[1]) - 1) or ""
        end = one.end()
    yield text[end:]


def _fill_opencode(text: str, given: _Given, _prompt: Prompt) -> Iterator[str]:
    places = [*_OPENCODE.finditer(text)]
    if not given.everything:
        yield text.replace("$ARGUMENTS", "")
        return
    last = max((int(one[1]) for one in places if one[1] != "ARGUMENTS"), default=0)
    end = 0
    for one in places:
        yield text[end : one.start()]
        if one[1] == "ARGUMENTS":
            yield given.everything
        elif 0 < int(one[1]) == last:
            # The last place takes all words that are left.
            yield " ".join(filter(None, given.words[last - 1 :]))
        else:
            yield given.word(int(one[1]) - 1) or ""
        end = one.end()
    yield text[end:]
    if not places:
        yield f"\n\n{given.everything}"


def _fill_named(pattern: re.Pattern[str]) -> Callable[[str, _Given, Prompt], Iterator[str]]:
    def fill(text: str, given: _Given, _prompt: Prompt) -> Iterator[str]:
        end = 0
        for one in pattern.finditer(text):
            name = one[1] if pattern.groups else _ALL
            yield text[end : one.start()]
            yield given.named.get(name, one[0] if pattern.groups else "")
            end = one.end()
        yield text[end:]

    return fill


_FILL: dict[Syntax, Callable[[str, _Given, Prompt], Iterator[str]]] = {
    "claude": _fill_claude,
    "codex": _fill_codex,
    "opencode": _fill_opencode,
    "vscode": _fill_named(_VSCODE),
    "gemini": _fill_named(_GEMINI),
    "plain": lambda text, _given, _prompt: iter((text,)),
}
