"""Exit codes of the client commands, and the error for wrong usage."""

DONE, REFUSED, MISUSED, UNREACHED = range(4)
"""The exit codes: success; the server returned an error; wrong usage; no connection, or no answer in time."""


class Misuse(Exception):
    """The command line is invalid; the text is the reason, in one line."""
