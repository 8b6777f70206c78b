"""Environment variables on a command line."""

import os
import re

VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*")


def read_variable(text: str) -> tuple[str, str]:
    """Return the name and the value in `text`, the value of an option `--env`: `NAME=VALUE`, or `NAME` for the
    current value of that variable. Raises ValueError with a message for the user."""
    name, equals, value = text.partition("=")
    if not VARIABLE_NAME.fullmatch(name) or (not equals and name not in os.environ):
        raise ValueError("--env takes NAME=VALUE, or the NAME of a variable that is set here")
    return name, value if equals else os.environ[name]
