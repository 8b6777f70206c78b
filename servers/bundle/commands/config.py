"""`python -m servers config`: what is pasted into the configuration of a client."""

import codecs
import sys
from collections.abc import Sequence
from pathlib import Path

from shared.kit.program import exit_with_error

from ..hosts.machine import this_machine
from ..hosts.snippets import snippet
from .hosting import HostParser, wanted

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Prints the snippet, and on stderr where it belongs; the exit code."""
    parser = HostParser("config", "Print what is pasted into the configuration of a client.")
    parser.add_entry()
    parser.add_server()
    options, arguments = parser.read(argv)
    try:
        found = wanted(options, arguments, options.name or options.server)
        # The files of all clients are UTF-8, so a pipe that is not gets ASCII.
        ascii_only = codecs.lookup(sys.stdout.encoding).name != "utf-8"
        text = snippet(found.client, [found.server], ascii_only)
        place = found.client.file(this_machine(), "user", Path.cwd())
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    print(text)  # noqa: T201 - it is the output
    print(f"goes into {place}; then {found.client.renewal}", file=sys.stderr)  # noqa: T201 - for people
    return 0
