"""The options of a program, read from its command line."""

import sys
from collections.abc import Mapping, Sequence
from typing import get_origin

from ...text import nearest_option
from ..messages import exit_with_error
from .command_line import CommandLine, Spelling, read_command_line
from .options import Group, LineValues, option_spellings, positional_field

_HELP, _HELP_ALL, _VERSION = "-h", "--help-all", "--version"


class OptionParser:
    """Reads the options of a program. For anything else it prints one line on stderr, and raises SystemExit with code
    2."""

    def __init__(
        self,
        program: str,
        groups: Sequence[Group],
        description: str | None = None,
        epilog: str = "",
        usage: str | None = None,
    ) -> None:
        """`usage` is the usage line of the help, if it can't be made from the fields."""
        self.program = program
        self.groups = groups
        self.description = description
        self.epilog = epilog
        self.usage = usage
        self.version: str | None = None
        """The text that `--version` prints; None if the program does not have this option."""
        self._fields = {name: field for group in groups for name, field in group.fields.items()}
        self._positional = positional_field(self._fields)

    def read(self, arguments: Sequence[str] | None) -> LineValues:
        """Return the values on the command line by field. Ends the program if an option is unknown or has no value,
        and after the help or version."""
        words = list(sys.argv[1:] if arguments is None else arguments)
        options = option_spellings(self._fields)
        spellings = {**options, _HELP: Spelling(_HELP, "1"), "--help": Spelling(_HELP, "1")}
        if any(group.is_rare for group in self.groups):
            spellings[_HELP_ALL] = Spelling(_HELP_ALL, "1")
        if self.version is not None:
            spellings[_VERSION] = Spelling(_VERSION, "1")
        line = read_command_line(words, spellings)
        self._end_early(words, line, options)
        values: dict[str, str | list[str]] = {}
        for name, value, *_ in line.values:
            field = name or self._positional
            if field is None:
                continue
            if get_origin(self._fields[field].annotation) is list:
                values[field] = [*values.get(field, []), value]
            else:
                values[field] = value
        return values

    def format_help(self, *, with_rare: bool = False) -> str:
        """Return the help, as wide as the terminal, with the groups of rare options only if `with_rare`."""
        from .help import help_text

        shown = [group for group in self.groups if with_rare or not group.is_rare]
        hidden = [group.title or "more" for group in self.groups if group not in shown]
        more = f" {_HELP_ALL} also lists the {', the '.join(hidden)}." if hidden else ""
        return help_text(shown, self.program, self.description, self.epilog + more, self.usage, self.version)

    def _end_early(self, words: Sequence[str], line: CommandLine, options: Mapping[str, Spelling]) -> None:
        """End the program with the help or version if requested, or with the first error."""
        requested = [(item.first, item.name) for item in line.values if item.name in (_HELP, _HELP_ALL, _VERSION)]
        errors = [(error.word, error.reason) for error in line.errors if error.reason]
        for _, message in sorted([*requested, *errors])[:1]:
            if message in (_HELP, _HELP_ALL):
                sys.stdout.write(self.format_help(with_rare=message == _HELP_ALL))
                sys.exit(0)
            if message == _VERSION:
                sys.stdout.write(f"{self.version}\n")
                sys.exit(0)
            exit_with_error(self.program, f"{message}; see --help")
        unknown = [error.word for error in line.errors]
        if self._positional is None:
            unknown += [item.word for item in line.values if item.name is None]
        if unknown:
            first = words[min(unknown)].removeprefix("--").partition("=")[0]
            close = nearest_option(first, [option.removeprefix("--") for option in options])
            advice = "; see --help" if close is None else f"; did you mean --{close}?"
            listed = " ".join(words[number] for number in sorted(unknown))
            exit_with_error(self.program, f"unrecognized arguments: {listed}{advice}")
