"""Finds and fills the placeholders in commands, such as `$1` and `$ARGUMENTS`, as each host does.

A host takes one text after the name of a command and splits it into words, but an MCP client sends arguments by name.
So if the numbers of placeholders have no gaps, the prompt gets one argument per number. Any other text with
placeholders gets a single argument, `arguments`, which is split as the host would split it. Nothing is executed (`!`)
or read (`@`), and the user's input is never searched for placeholders.

The rules of Claude Code and Codex were observed in their versions 2.1.330 and 0.80.0; the rules of Gemini CLI and VS
Code are documented. The rules of opencode are partly documented; the rest is taken from compatible programs.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .definitions import Argument, Prompt, Syntax

_ALL_WORDS = "arguments"
"""The name of the argument that contains all words."""
_MAX_WORDS = 20
"""Maximum number of numbered placeholders that get an argument each. If there are more, one argument has all
words."""

# Patterns are compiled when they are first used: a server starts sooner, and few libraries have files of all hosts.
_CLAUDE = r"(\\*)\$(?:ARGUMENTS(?:\[([0-9]{1,4})\])?|([0-9]{1,4})(?!\w)|(%s)(?!\w))"
_NO_NAME = "(?!)"
"""A pattern that matches nothing. It replaces the %s in `_CLAUDE` if no names of arguments are declared."""
_CODEX_WORDS = r"\$\$|\$(ARGUMENTS|[1-9])"
_CODEX_NAMES = r"\$\$|\$(?!ARGUMENTS(?![A-Z0-9_]))([A-Z][A-Z0-9_]*)"
_OPENCODE = r"\$(ARGUMENTS|[0-9]{1,4})"
_VSCODE = r"\$\{input:([\w-]{1,64})(?::([^{}]{0,500}))?\}"
_GEMINI = "{{args}}"
_HINT = r"<([^<>]{1,100})>|\[([^\[\]]{1,100})\]|(\S{1,100})"
_QUOTED = r"""\\(.)|'([^']*)'|"((?>[^"\\]+|\\.)*+)\""""
_WORD = rf"""(?>[^ \t\r\n"'\\]+|{_QUOTED})++"""


class TextArguments(NamedTuple):
    """The arguments of a text with placeholders."""

    arguments: tuple[Argument, ...] = ()
    words: tuple[str, ...] = ()
    """The names of the arguments that are one word each, in order; empty if one argument has all words, or if the
    host takes the arguments by name."""


def find_arguments(text: str, syntax: Syntax, hint: str = "", names: Sequence[str] = ()) -> TextArguments:
    """Return the arguments of a text. `hint` is the `argument-hint` of its front matter, and `names` are the
    arguments that the front matter declares, which only Claude Code supports."""
    if syntax == "claude":
        if names:
            return TextArguments(tuple(Argument(name) for name in names), tuple(names))
        matches = [match for match in re.finditer(_CLAUDE % _NO_NAME, text) if len(match[1]) % 2 == 0]
        return _find_word_arguments([match[2] or match[3] for match in matches], 0, hint)
    if syntax == "codex":
        named = filter(None, (match[1] for match in re.finditer(_CODEX_NAMES, text)))
        if arguments := tuple(Argument(name) for name in dict.fromkeys(named)):
            return TextArguments(arguments)
        return _find_word_arguments([match[1] for match in re.finditer(_CODEX_WORDS, text) if match[1]], 1, hint)
    if syntax == "opencode":
        return _find_word_arguments([match[1] for match in re.finditer(_OPENCODE, text)], 1, hint)
    if syntax == "vscode":
        descriptions: dict[str, str | None] = {}
        for match in re.finditer(_VSCODE, text):
            descriptions[match[1]] = descriptions.get(match[1]) or match[2]
        return TextArguments(
            tuple(Argument(name, description=description) for name, description in descriptions.items())
        )
    return TextArguments((Argument(_ALL_WORDS),) if syntax == "gemini" and _GEMINI in text else ())


def _find_word_arguments(numerals: Sequence[str | None], first: int, hint: str) -> TextArguments:
    """Return the arguments of a text whose placeholders have these numerals. A placeholder without a number means all
    words. The host counts words from `first`. `hint` is the `argument-hint`, which may have names for the words."""
    numbers = sorted({int(numeral) for numeral in numerals if numeral and numeral.isdecimal()})
    is_numbered = all(numeral and numeral.isdecimal() for numeral in numerals)
    # Prices and the fields of an awk program look like placeholders, but are rarely numbered without gaps.
    if is_numbered and numbers and numbers == [*range(first, first + len(numbers))] and len(numbers) <= _MAX_WORDS:
        hint_items = [item[0] for item in re.finditer(_HINT, hint)]
        hinted_names = [re.sub(r"[^A-Za-z0-9_]+", "_", item.strip("<>[].… ")).strip("_")[:64] for item in hint_items]
        fits = len(hinted_names) == len(numbers) == len(set(hinted_names)) and all(hinted_names)
        words = tuple(hinted_names) if fits else tuple(f"arg{number}" for number in numbers)
        required_words = {
            word for word, item in zip(words, hint_items, strict=False) if fits and item.startswith("<")
        }
        return TextArguments(tuple(Argument(word, required=word in required_words) for word in words), words)
    if not numerals and not hint:
        return TextArguments()
    required = hint.startswith("<") and "[" not in hint and "optional" not in hint.lower()
    return TextArguments((Argument(_ALL_WORDS, description=hint or None, required=required),))


def fill_placeholders(text: str, prompt: Prompt, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the pieces of a text of the prompt, in which values of arguments replace the placeholders."""
    by_name = {name: str(value) for name, value in values.items() if value not in (None, "")}
    if prompt.words:
        words = [by_name.get(name) for name in prompt.words]
        everything = " ".join(filter(None, words))
    else:
        everything = by_name.get(_ALL_WORDS, "")
        words = [*_split_words(everything)]
    return _FILLERS[prompt.syntax](text, _Input(everything, words, by_name), prompt)


def _split_words(text: str) -> list[str]:
    """Return the words of a text, without the quotation marks of a POSIX shell; if a quotation is unclosed, the whole
    text as one word. (`shlex.split` takes half a minute for a word of a million characters.)"""
    if not re.fullmatch(rf"(?>[ \t\r\n]+|{_WORD})*+", text, re.DOTALL):
        return [text]
    return [re.sub(_QUOTED, _unquote, word[0], flags=re.DOTALL) for word in re.finditer(_WORD, text, re.DOTALL)]


def _unquote(match: re.Match[str]) -> str:
    return match[1] or match[2] or re.sub(r'\\(["\\])', r"\1", match[3] or "")


class _Input(NamedTuple):
    """The user's input, in the forms that hosts need."""

    everything: str
    """All words as one string, as a user would type it."""
    words: Sequence[str | None]
    """The words; None for an omitted argument."""
    by_name: Mapping[str, str]
    """The values of arguments by name, without omitted ones."""

    def word(self, index: int) -> str | None:
        """Return the word at an index from 0; None if it was not given."""
        return self.words[index] if 0 <= index < len(self.words) else None


def _fill_claude(text: str, user_input: _Input, prompt: Prompt) -> Iterator[str]:
    names = "|".join(map(re.escape, prompt.words)) if prompt.declared else _NO_NAME
    replaced, end = False, 0
    for match in re.finditer(_CLAUDE % names, text):
        slashes, index, name = match[1], match[2] or match[3], match[4]
        value: str | None
        if len(slashes) % 2:
            slashes, value = slashes[1:], match[0][len(slashes) :]
        elif name:
            value = user_input.by_name.get(name, "")
        else:
            value = user_input.everything if index is None else user_input.word(int(index))
        # If there is no word with this number, it is no placeholder but perhaps a price, so keep the dollar sign.
        if value is None:
            continue
        replaced |= len(match[1]) % 2 == 0
        yield f"{text[end : match.start()]}{slashes}"
        yield value
        end = match.end()
    yield text[end:]
    if user_input.everything and not replaced:
        yield f"\n\nARGUMENTS: {user_input.everything}"


def _fill_codex(text: str, user_input: _Input, prompt: Prompt) -> Iterator[str]:
    is_named = bool(prompt.arguments) and not prompt.words and prompt.arguments[0].name != _ALL_WORDS
    end = 0
    for match in re.finditer(_CODEX_NAMES if is_named else _CODEX_WORDS, text):
        if match[1] is None or (is_named and match[1] not in user_input.by_name):
            continue
        yield text[end : match.start()]
        if is_named:
            yield user_input.by_name[match[1]]
        else:
            # Codex removes the quotation marks around words.
            everything = " ".join(filter(None, user_input.words))
            yield everything if match[1] == "ARGUMENTS" else user_input.word(int(match[1]) - 1) or ""
        end = match.end()
    yield text[end:]


def _fill_opencode(text: str, user_input: _Input, _prompt: Prompt) -> Iterator[str]:
    matches = [*re.finditer(_OPENCODE, text)]
    if not user_input.everything:
        yield text.replace("$ARGUMENTS", "")
        return
    last = max((int(match[1]) for match in matches if match[1] != "ARGUMENTS"), default=0)
    end = 0
    for match in matches:
        yield text[end : match.start()]
        if match[1] == "ARGUMENTS":
            yield user_input.everything
        elif 0 < int(match[1]) == last:
            # The last placeholder takes all remaining words.
            yield " ".join(filter(None, user_input.words[last - 1 :]))
        else:
            yield user_input.word(int(match[1]) - 1) or ""
        end = match.end()
    yield text[end:]
    if not matches:
        yield f"\n\n{user_input.everything}"


def _fill_vscode(text: str, user_input: _Input, _prompt: Prompt) -> Iterator[str]:
    end = 0
    for match in re.finditer(_VSCODE, text):
        yield text[end : match.start()]
        yield user_input.by_name.get(match[1], match[0])
        end = match.end()
    yield text[end:]


_FILLERS: dict[Syntax, Callable[[str, _Input, Prompt], Iterator[str]]] = {
    "claude": _fill_claude,
    "codex": _fill_codex,
    "opencode": _fill_opencode,
    "vscode": _fill_vscode,
    "gemini": lambda text, user_input, _prompt: iter((text.replace(_GEMINI, user_input.everything),)),
    "plain": lambda text, _input, _prompt: iter((text,)),
}
