"""Exit codes of the commands that act as a client, and the error for incorrect usage."""

DONE, REFUSED, MISUSED, UNREACHED = range(4)
"""The exit codes: success; the server returned an error; incorrect usage; no connection, or no answer in time."""


class Misuse(Exception):
    """Raised for incorrect usage of a command. The text is the reason, in one line."""
