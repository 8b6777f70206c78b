"""`python -m servers doctor`: what keeps the servers from running, and how to fix it."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
from rich.text import Text

from servers.catalog import load_catalog
from servers.common.machine import this_machine
from shared.program.messages import exit_with_error

from ..doctor.examination import Examination, examine
from ..doctor.findings import Finding, Severity
from ..doctor.installation import this_installation
from ..doctor.served import Served, examine_served
from ..hosts.clients import CLIENTS, client_named
from ..terminal.command_parser import CommandParser
from ..terminal.output import console, print_json, wrap

Look = Callable[[], Awaitable[list[Finding]]]

_STYLES = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.FAULT: "bold red"}


def main(argv: Sequence[str]) -> int:
    """Prints what was found; the exit code is 1 where something does not work."""
    parser = CommandParser(
        "doctor",
        "Look at the installation, at the configuration of each client, and at this shell; start each of our servers "
        "as its client would, and speak to it. Say in plain words what to do.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="servers to look at (default: all)")
    text = "look at this configuration of `serve` and at the servers in it, in place of the clients"
    parser.add_argument("--config", type=Path, metavar="FILE", help=text)
    known = ", ".join(client.name for client in CLIENTS)
    parser.add_argument("--client", metavar="CLIENT", help=f"the only client to look at: {known}")
    parser.add_catalog()
    parser.add_json()
    given = parser.parse_args(argv)
    try:
        catalog = load_catalog(given.catalog)
        if given.config is None:
            entries = [catalog.entry(name) for name in dict.fromkeys(given.names)] or catalog.servers
            clients = [client_named(given.client)] if given.client is not None else []
            machine, here, asked = this_machine(), this_installation(), bool(given.names)
            look: Look = partial(
                examine, Examination(machine, here, Path.cwd(), entries, asked=asked, clients=clients)
            )
        elif given.client is not None:
            raise ValueError("--client and --config are two things to look at: give one of them")
        else:
            look = partial(examine_served, Served(given.config, catalog, this_installation(), given.names))
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    with console().status("starting the servers"):
        found = anyio.run(look)
    if given.json:
        print_json([finding._asdict() for finding in found])
    else:
        out = console()
        for finding in found:
            told = Text(wrap(out, finding.line, " " * 8))
            told.stylize(_STYLES[finding.severity], 0, 8)
            out.print(told)
        faults, warnings = (
            sum(finding.severity is severity for finding in found) for severity in (Severity.FAULT, Severity.WARNING)
        )
        counted = f"{faults} {'fault' if faults == 1 else 'faults'}"
        out.print(f"{counted}, {warnings} {'warning' if warnings == 1 else 'warnings'}")
    return 1 if any(finding.severity is Severity.FAULT for finding in found) else 0
