"""The one reader of command lines: what the words set, and what is wrong with them, each with its place.

A server reads its own arguments with it. So do the commands that write a command line for a server to be started
later, or judge one: they have to see in it what the server will see, and to change a part of a word where it stands.

The rules are argparse's, with names in full only: `--name VALUE` or `--name=VALUE`, switches as `--name` and
`--no-name`, in any order with the words that have no name; after `--` there are no options. What looks like a
negative number, or has a space in it, is no option unless it is known as one. argparse itself knows no places, and
would be 0.4 MiB of every server; it writes the help.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


class Spelling(NamedTuple):
    """What one spelling of an option means."""

    name: str
    """What it sets."""
    value: str | None = None
    """What it is set to by a switch; None for an option that takes a value."""
    choices: tuple[str, ...] = ()
    """The values it takes; any where there are none."""


class Given(NamedTuple):
    """Something that is set."""

    name: str | None
    """What is set; None for a word that has no name."""
    value: str
    first: int
    """The number of the word that it begins with, from 0."""
    word: int
    """The number of the word that the value stands in: the same, or the next."""
    start: int
    """Where in that word the value begins."""


class Fault(NamedTuple):
    """Something that is wrong, and the number of the word, from 0."""

    word: int
    reason: str
    """What is wrong; empty where there is no such option."""


class CommandLine(NamedTuple):
    """What was read, in the order of the words."""

    given: list[Given]
    faults: list[Fault]


def spellings(name: str, option: str, *, is_switch: bool, choices: Iterable[str] = ()) -> dict[str, Spelling]:
    """How an option, such as `--dry-run`, can be written. A switch can be taken back by `--no-dry-run`; one that
    begins with `--no-` is left out instead, since `--no-no-x` would help nobody."""
    if not is_switch:
        return {option: Spelling(name, None, tuple(choices))}
    back = {} if option.startswith("--no-") else {f"--no-{option.removeprefix('--')}": Spelling(name, "0")}
    return {option: Spelling(name, "1"), **back}


def read_command_line(words: Sequence[str], options: Mapping[str, Spelling]) -> CommandLine:
    """Reads `words`, in which there may be `options`, by their spelling. Nothing is changed or looked up."""
    line = CommandLine([], [])
    end = words.index("--") if "--" in words else len(words)
    number = 0
    while number < end:
        word = words[number]
        if not _is_option(word, options):
            line.given.append(Given(None, word, number, number, 0))
        elif (option := options.get(word.partition("=")[0])) is None:
            line.faults.append(Fault(number, ""))
        else:
            number = _read_option(line, words[:end], number, option, options)
        number += 1
    line.given.extend(Given(None, word, place, place, 0) for place, word in enumerate(words) if place > end)
    return line


def _read_option(
    line: CommandLine, words: Sequence[str], first: int, option: Spelling, options: Mapping[str, Spelling]
) -> int:
    """Reads the option that begins with the word `first`; the number of its last word."""
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
        known = ", ".join(map(repr, option.choices))
        line.faults.append(Fault(first, f"argument {spelling}: invalid choice: {value!r} (choose from {known})"))
    line.given.append(Given(option.name, value, first, last, start))
    return last


def _is_option(word: str, options: Mapping[str, Spelling]) -> bool:
    if not word.startswith("-") or word == "-":
        return False
    return word.partition("=")[0] in options or not (" " in word or _NUMBER.fullmatch(word))
