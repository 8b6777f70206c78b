"""Parses the command lines of servers: returns the options that the words set, and errors, each with its position.

A server parses its own arguments with it. Commands that write or check the command line of a server that is started
later use it too: they must parse the line like the server, and change part of a word in place.

The rules are those of argparse, but names can't be abbreviated: `--name VALUE` or `--name=VALUE`, switches as
`--name` and `--no-name`, in any order with positional words; after `--` there are no options. A word that looks like
a negative number, or has a space in it, is an option only if it is known as one. argparse itself reports no
positions, and would need 0.4 MiB of memory in every server, so it is used only to write the help.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


class Spelling(NamedTuple):
    """The meaning of a spelling of an option."""

    name: str
    """The field that it sets."""
    value: str | None = None
    """The value that a switch sets; None for an option that takes a value."""
    choices: tuple[str, ...] = ()
    """The allowed values; if empty, any value."""


class GivenValue(NamedTuple):
    """A value in a command line."""

    name: str | None
    """The field that it sets; None for a positional word."""
    value: str
    first: int
    """The number, from 0, of the word with the name of the option."""
    word: int
    """The number of the word with the value: the same word, or the next one."""
    start: int
    """The position of the value in that word."""


class CommandLineError(NamedTuple):
    """An error, and the number, from 0, of the word that contains it."""

    word: int
    reason: str
    """The text of the error; empty if the option is unknown."""


class CommandLine(NamedTuple):
    """The values and errors, in the order of the words."""

    values: list[GivenValue]
    errors: list[CommandLineError]


def spellings(name: str, option: str, *, is_switch: bool, choices: Iterable[str] = ()) -> dict[str, Spelling]:
    """Return the spellings of an option, such as `--dry-run`, and for a switch also `--no-dry-run`."""
    if not is_switch:
        return {option: Spelling(name, None, tuple(choices))}
    # An option that begins with `--no-` has no negated spelling: nobody would look for `--no-no-x`.
    negated = {} if option.startswith("--no-") else {f"--no-{option.removeprefix('--')}": Spelling(name, "0")}
    return {option: Spelling(name, "1"), **negated}


def read_command_line(words: Sequence[str], options: Mapping[str, Spelling]) -> CommandLine:
    """Parse `words`, which may contain the `options`, whose keys are their spellings. Values are not validated."""
    line = CommandLine([], [])
    end = words.index("--") if "--" in words else len(words)
    number = 0
    while number < end:
        word = words[number]
        if not _is_option(word, options):
            line.values.append(GivenValue(None, word, number, number, 0))
        elif (option := options.get(word.partition("=")[0])) is None:
            line.errors.append(CommandLineError(number, ""))
        else:
            number = _read_option(line, words[:end], number, option, options)
        number += 1
    line.values.extend(GivenValue(None, word, number, number, 0) for number, word in enumerate(words) if number > end)
    return line


def _read_option(
    line: CommandLine, words: Sequence[str], first: int, option: Spelling, options: Mapping[str, Spelling]
) -> int:
    """Read the option that begins with the word `first`, and return the number of its last word."""
    spelling, equals, value = words[first].partition("=")
    last, start = first, len(spelling) + len(equals)
    if option.value is not None:
        if equals:
            line.errors.append(CommandLineError(first, f"argument {spelling}: ignored explicit argument {value!r}"))
            return first
        value = option.value
    elif not equals:
        last, start = first + 1, 0
        if last == len(words) or _is_option(words[last], options):
            line.errors.append(CommandLineError(first, f"argument {spelling}: expected one argument"))
            return first
        value = words[last]
    if option.choices and value not in option.choices:
        choices = ", ".join(map(repr, option.choices))
        line.errors.append(
            CommandLineError(first, f"argument {spelling}: invalid choice: {value!r} (choose from {choices})")
        )
    line.values.append(GivenValue(option.name, value, first, last, start))
    return last


def _is_option(word: str, options: Mapping[str, Spelling]) -> bool:
    if not word.startswith("-") or word == "-":
        return False
    return word.partition("=")[0] in options or not (" " in word or _NUMBER.fullmatch(word))
