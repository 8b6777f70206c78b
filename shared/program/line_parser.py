"""The parser of a command's own arguments.

It is separate because argparse, which takes 6 ms and 0.4 MiB, is only used for commands; `settings/command_line.py`
reads the arguments of a server. Both suggest the closest option, and end with the same exit code, so that they behave
alike.
"""

import argparse
from typing import NoReturn

from ..text import nearest_option
from .messages import exit_with_error


class LineParser(argparse.ArgumentParser):
    """A parser that reports errors in one line, without the usage, which would hide the error."""

    def error(self, message: str) -> NoReturn:
        """End the program with the most similar option, or with a reference to the help."""
        unknown = message.partition("unrecognized arguments: ")[2].split()
        options = [option[2:] for option in self._option_string_actions if option.startswith("--")]
        close = nearest_option(unknown[0].removeprefix("--").partition("=")[0], options) if unknown else None
        exit_with_error(self.prog, f"{message}; did you mean --{close}?" if close else f"{message}; see --help")
