"""`python -m servers install`: a server put into the configuration of a client."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio

from shared.kit.program import exit_with_error, plain

from ..doctor.configurations import Launch
from ..doctor.findings import Severity
from ..doctor.installation import this_installation
from ..doctor.speaking import MODES
from ..doctor.trial import try_launch
from ..hosts.clients import Machine
from ..hosts.installing import install
from .changing import changing_parser, show_and_make, target_of
from .hosting import wanted
from .showing import console, wrapped

__all__ = ["main"]

SECONDS = 60.0
"""How long the server may take to answer: as long as clients wait, since uvx may have packages to fetch."""


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
        exit_with_error(parser.prog, str(error))
    if options.dry_run:
        return 0
    directory = Path(target.machine.home) if options.scope == "user" else Path.cwd()
    return _try(Launch(found.client, target.path, directory, found.server, found.entry, found.words), target.machine)


def _try(launch: Launch, machine: Machine) -> int:
    """Starts the server as the client will, and says what came of it; the exit code. The entry stays in any case:
    what is wrong may be put right where it is."""
    out = console()
    with out.status(f"starting it as {launch.client.title} will"):
        trial = anyio.run(partial(try_launch, launch, machine, this_installation(), SECONDS, modes=MODES[:1]))
    for finding in trial.findings:
        if finding.severity is not Severity.OK:
            out.print(wrapped(out, plain(f"{finding.severity}: {finding.what}. Fix: {finding.fix}")))
    if trial.tools is not None:
        out.print(f"works: {trial.tools} {'tool' if trial.tools == 1 else 'tools'}")
    elif any(finding.severity is Severity.FAULT for finding in trial.findings):
        out.print("it does not work yet; the entry stays, and install can be called again, or uninstall")
        return 1
    else:
        out.print(plain("; ".join(finding.what for finding in trial.findings if finding.severity is Severity.OK)))
    return 0
