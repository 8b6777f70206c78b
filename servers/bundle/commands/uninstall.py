"""`python -m servers uninstall`: a server taken out of the configuration of a client."""

from collections.abc import Sequence

from shared.kit.program import exit_with_error

from ..catalog import Entry, load_catalog
from ..hosts.installing import uninstall
from ..hosts.launching import launch_command, local_command
from .changing import changing_parser, show_and_make, target_of

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Shows and makes the change; the exit code."""
    parser = changing_parser("uninstall", "Take a server out of the configuration of a client, without a trace.")
    options, arguments = parser.read(argv)
    try:
        if arguments:
            raise ValueError(f"it takes no {arguments[0]!r}: the name of the server is enough")
        program = _program(load_catalog(options.catalog).entry(options.server))
        with target_of(options) as target:
            change = uninstall(target, options.name or options.server, program)
            then = f"{target.client.title} knows it no more when it starts again"
            show_and_make(change, frozenset(), options.dry_run, then)
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    return 0


def _program(entry: Entry) -> list[str]:
    """What an entry of this copy starts."""
    try:
        return launch_command(entry)
    except ValueError:
        # The wheel is gone; what install put there is known without it.
        return local_command(entry)
