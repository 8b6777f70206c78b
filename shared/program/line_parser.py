"""The parser of the arguments of commands.

It uses argparse, which takes 6 ms and 0.4 MiB, so it is not used for servers: `settings/command_line.py` reads their
arguments. Both behave alike: they suggest the closest option, and end with the same exit code.
"""

import argparse
from typing import NoReturn

from ..text import nearest_option
from .messages import exit_with_error


class LineParser(argparse.ArgumentParser):
    """A parser that reports errors in one line, without the usage, which would distract from the error."""

    def error(self, message: str) -> NoReturn:
        """End the program with the most similar option, or with a reference to the help."""
        unknown = message.partition("unrecognized arguments: ")[2].split()
        options = [option[2:] for option in self._option_string_actions if option.startswith("--")]
        close = nearest_option(unknown[0].removeprefix("--").partition("=")[0], options) if unknown else None
        exit_with_error(self.prog, f"{message}; did you mean --{close}?" if close else f"{message}; see --help")
