"""`python -m servers install`: a server put into the configuration of a client."""

from collections.abc import Sequence

from ..hosts.installing import install
from .arguments import refuse
from .changing import changing_parser, show_and_make, target_of
from .hosting import wanted

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Shows and makes the change; the exit code."""
    parser = changing_parser("install", "Put a server into the configuration of a client, and nothing else.")
    parser.add_switch("--replace", "replace an entry of that name that was not put there, or was changed since")
    parser.add_server()
    options, arguments = parser.read(argv)
    try:
        found = wanted(options, arguments, options.name or options.server)
        with target_of(options) as target:
            change = install(target, found.server, options.replace)
            show_and_make(change, found.secrets, options.dry_run, f"now {found.client.renewal}")
    except ValueError as error:
        refuse(parser.prog, str(error))
    return 0
