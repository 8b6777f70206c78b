"""Command lines: the same reading as by argparse, with the position of each option and fault."""

import argparse
from itertools import product

import pytest

from shared.program.settings.command_line import (
    CommandLine,
    CommandLineError,
    GivenValue,
    read_command_line,
    spellings,
)

OPTIONS = {
    **spellings("deny", "--deny", is_switch=False),
    **spellings("level", "--level", is_switch=False, choices=["low", "high"]),
    **spellings("poll", "--poll", is_switch=True),
    **spellings("no_auth", "--no-auth", is_switch=True),
}
WORDS = [
    *("a", "low", "-", "-1", "-x", "-x y", "", "--deny", "--deny=b", "--deny=", "--level", "--level=low"),
    *("--poll", "--no-poll", "--poll=1", "--no-auth", "--nope", "--"),
]


def by_argparse() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False, add_help=False)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--deny", action="append", default=[])
    parser.add_argument("--level", choices=["low", "high"])
    parser.add_argument("--poll", action=argparse.BooleanOptionalAction)
    parser.add_argument("--no-auth", action="store_true")
    return parser


def read_by_argparse(parser: argparse.ArgumentParser, line: list[str]) -> object:
    # With `--` among them, argparse takes the words before and after it for different things from version to version.
    end = line.index("--") if "--" in line else len(line)
    try:
        found = parser.parse_intermixed_args(line[:end])
    except (argparse.ArgumentError, SystemExit):
        return None
    return {**vars(found), "words": [*found.words, *line[end + 1 :]]}


def read_by_us(line: list[str]) -> object:
    found = read_command_line(line, OPTIONS)
    if found.errors:
        return None
    last = {one.name: one.value for one in found.values}
    return {
        "words": [one.value for one in found.values if one.name is None],
        "deny": [one.value for one in found.values if one.name == "deny"],
        "level": last.get("level"),
        "poll": {"1": True, "0": False, None: None}[last.get("poll")],
        "no_auth": "no_auth" in last,
    }


def test_a_command_line_is_read_as_by_argparse(capsys: pytest.CaptureFixture[str]) -> None:
    parser = by_argparse()
    lines = [list(line) for length in (1, 2) for line in product(WORDS, repeat=length)]
    lines += [[*line, word] for line in product(WORDS[5:9], repeat=2) for word in WORDS]
    for line in lines:
        assert read_by_us(line) == read_by_argparse(parser, line), line


@pytest.mark.parametrize(
    ("line", "values", "errors"),
    [
        (["a", "-"], [GivenValue(None, "a", 0, 0, 0), GivenValue(None, "-", 1, 1, 0)], []),
        (["--deny", "x"], [GivenValue("deny", "x", 0, 1, 0)], []),
        (["a", "--deny=x=y"], [GivenValue(None, "a", 0, 0, 0), GivenValue("deny", "x=y", 1, 1, 7)], []),
        (["--no-poll", "--poll"], [GivenValue("poll", "0", 0, 0, 9), GivenValue("poll", "1", 1, 1, 6)], []),
        (["--", "--poll", "--"], [GivenValue(None, "--poll", 1, 1, 0), GivenValue(None, "--", 2, 2, 0)], []),
        (["a", "--nope=1"], [GivenValue(None, "a", 0, 0, 0)], [CommandLineError(1, "")]),
        (
            ["--deny", "--poll"],
            [GivenValue("poll", "1", 1, 1, 6)],
            [CommandLineError(0, "argument --deny: expected one argument")],
        ),
        (
            ["--deny", "--", "x"],
            [GivenValue(None, "x", 2, 2, 0)],
            [CommandLineError(0, "argument --deny: expected one argument")],
        ),
        (["--no-auth=1"], [], [CommandLineError(0, "argument --no-auth: ignored explicit argument '1'")]),
        (["--no-no-auth"], [], [CommandLineError(0, "")]),
    ],
)
def test_options_and_faults_have_their_position(
    line: list[str], values: list[GivenValue], errors: list[CommandLineError]
) -> None:
    assert read_command_line(line, OPTIONS) == CommandLine(values, errors)


def test_the_fault_of_an_invalid_choice_names_the_choices() -> None:
    (fault,) = read_command_line(["a", "--level", "up"], OPTIONS).errors
    assert fault == CommandLineError(1, "argument --level: invalid choice: 'up' (choose from 'low', 'high')")
