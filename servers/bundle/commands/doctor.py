"""`python -m servers doctor`: finds out why servers do not work, and how to fix that."""

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
from ..doctor.served import ServeConfiguration, examine_served
from ..hosts.clients import CLIENTS, get_client
from ..terminal.command_parser import CommandParser
from ..terminal.output import console, print_json, wrap

Check = Callable[[], Awaitable[list[Finding]]]

_STYLES = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.FAULT: "bold red"}


def main(argv: Sequence[str]) -> int:
    """Print the findings; return the exit code, which is 1 if there is a fault."""
    parser = CommandParser(
        "doctor",
        "Check the installation, each client's configuration and this shell. Start each of the bundle's servers as "
        "its client does, and connect to it. Explain how to fix each problem.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="servers to check (default: all)")
    text = "check this configuration of `serve` and its servers, instead of the clients"
    parser.add_argument("--config", type=Path, metavar="FILE", help=text)
    names = ", ".join(client.name for client in CLIENTS)
    parser.add_argument("--client", metavar="CLIENT", help=f"check only this client: one of {names}")
    parser.add_catalog()
    parser.add_json()
    args = parser.parse_args(argv)
    try:
        catalog = load_catalog(args.catalog)
        if args.config is None:
            entries = [catalog.entry(name) for name in dict.fromkeys(args.names)] or catalog.servers
            clients = [get_client(args.client)] if args.client is not None else []
            machine, here, is_named = this_machine(), this_installation(), bool(args.names)
            check: Check = partial(
                examine, Examination(machine, here, Path.cwd(), entries, is_named=is_named, clients=clients)
            )
        elif args.client is not None:
            raise ValueError("--client and --config can't be used together")
        else:
            check = partial(examine_served, ServeConfiguration(args.config, catalog, this_installation(), args.names))
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    with console().status("starting the servers"):
        findings = anyio.run(check)
    if args.json:
        print_json([finding._asdict() for finding in findings])
    else:
        out = console()
        for finding in findings:
            line = Text(wrap(out, finding.line, " " * 8))
            line.stylize(_STYLES[finding.severity], 0, 8)
            out.print(line)
        faults, warnings = (
            sum(finding.severity is severity for finding in findings)
            for severity in (Severity.FAULT, Severity.WARNING)
        )
        counted = f"{faults} {'fault' if faults == 1 else 'faults'}"
        out.print(f"{counted}, {warnings} {'warning' if warnings == 1 else 'warnings'}")
    return 1 if any(finding.severity is Severity.FAULT for finding in findings) else 0
