"""How a command of this family ends."""

DONE, REFUSED, MISUSED, UNREACHED = range(4)
"""The exit codes: all is well; the server answered with an error; the command line asks for what is not there; there
is no connection, or no answer in time."""


class Misuse(Exception):
    """The command line asks for what can't be done; the text says what, in one line."""
