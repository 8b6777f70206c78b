"""The only parser of command lines: the options that the words set, and the errors in them, each with its position.

A server parses its own arguments with it. So do commands that write or check a command line for a server that is
started later: they must parse it like the server, and change part of a word in place.

The rules are those of argparse, but names can't be abbreviated: `--name VALUE` or `--name=VALUE`, switches as
`--name` and `--no-name`, in any order with positional words; after `--` there are no options. A word that looks like
a negative number, or has a space in it, is an option only if it is known as one. argparse itself reports no
positions, and would cost every server 0.4 MiB of memory; it is used only to write the help.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


class Spelling(NamedTuple):
    """The meaning of one spelling of an option."""

    name: str
    """The field that it sets."""
    value: str | None = None
    """The value that a switch sets; None for an option that takes a value."""
    choices: tuple[str, ...] = ()
    """The values it takes; any if empty."""


class GivenValue(NamedTuple):
    """A value that is set."""

    name: str | None
    """The field; None for a word without a name."""
    value: str
    first: int
    """The number of the word at which it begins, from 0."""
    word: int
    """The number of the word with the value: the same, or the next."""
    start: int
    """The position of the value in that word."""


class Fault(NamedTuple):
    """An error, and the number of the word, from 0."""

    word: int
    reason: str
    """The error; empty if there is no such option."""


class CommandLine(NamedTuple):
    """The values and errors, in the order of the words."""

    given: list[GivenValue]
    faults: list[Fault]


def spellings(name: str, option: str, *, is_switch: bool, choices: Iterable[str] = ()) -> dict[str, Spelling]:
    """Return the spellings of an option, such as `--dry-run`; of a switch, also `--no-dry-run`."""
    if not is_switch:
        return {option: Spelling(name, None, tuple(choices))}
    # Nobody would look for `--no-no-x`.
    negated = {} if option.startswith("--no-") else {f"--no-{option.removeprefix('--')}": Spelling(name, "0")}
    return {option: Spelling(name, "1"), **negated}


def read_command_line(words: Sequence[str], options: Mapping[str, Spelling]) -> CommandLine:
    """Parse `words`, which may contain the `options`, given by spelling. Values are not converted or looked up."""
    line = CommandLine([], [])
    end = words.index("--") if "--" in words else len(words)
    number = 0
    while number < end:
        word = words[number]
        if not _is_option(word, options):
            line.given.append(GivenValue(None, word, number, number, 0))
        elif (option := options.get(word.partition("=")[0])) is None:
            line.faults.append(Fault(number, ""))
        else:
            number = _read_option(line, words[:end], number, option, options)
        number += 1
    line.given.extend(GivenValue(None, word, number, number, 0) for number, word in enumerate(words) if number > end)
    return line


def _read_option(
    line: CommandLine, words: Sequence[str], first: int, option: Spelling, options: Mapping[str, Spelling]
) -> int:
    """Read the option that begins with the word `first`, and return the number of its last word."""
    spelling, equals, value = words[first].partition("=")
    last, start = first, len(spelling) + len(equals)
    if option.value is not None:
        if equals:
            line.faults.append(Fault(first, f"argument {spelling}: ignored explicit argument {value!r}"))
            return first
        value = option.value
    elif not equals:
        last, start = first + 1, 0
        if last == len(words) or _is_option(words[last], options):
            line.faults.append(Fault(first, f"argument {spelling}: expected one argument"))
            return first
        value = words[last]
    if option.choices and value not in option.choices:
        choices = ", ".join(map(repr, option.choices))
        line.faults.append(Fault(first, f"argument {spelling}: invalid choice: {value!r} (choose from {choices})"))
    line.given.append(GivenValue(option.name, value, first, last, start))
    return last


def _is_option(word: str, options: Mapping[str, Spelling]) -> bool:
    if not word.startswith("-") or word == "-":
        return False
    return word.partition("=")[0] in options or not (" " in word or _NUMBER.fullmatch(word))
