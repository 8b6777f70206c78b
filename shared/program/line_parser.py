"""The parser of a command's own arguments.

It is apart because argparse, which takes 6 ms and 0.4 MiB, is for commands alone: the arguments of a server are read
by `settings/command_line.py`. Both name the option that was meant, and end with the same exit code, so that it can't
be seen which of them has read a line.
"""

import argparse
from typing import NoReturn

from ..text import nearest
from .messages import exit_with_error


class LineParser(argparse.ArgumentParser):
    """A parser that refuses in one line, without the usage, which would hide what is wrong."""

    def error(self, message: str) -> NoReturn:
        """Ends the program, with the option that was meant, or else where all are told."""
        unknown = message.partition("unrecognized arguments: ")[2].split()
        known = [option[2:] for option in self._option_string_actions if option.startswith("--")]
        close = nearest(unknown[0].removeprefix("--").partition("=")[0], known, 0.75) if unknown else None
        exit_with_error(self.prog, f"{message}; did you mean --{close}?" if close else f"{message}; see --help")
