"""`python -m servers install` and `uninstall`: add a server to the configuration of a client, and remove it.

Both print the change before they make it.
"""

import shlex
from argparse import Namespace
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import anyio
from rich.text import Text

from servers.catalog import load_catalog
from servers.common.machine import this_machine
from shared.program.messages import exit_with_error
from shared.text import plain

from ..doctor.configurations import Launch
from ..doctor.examination import try_launch
from ..doctor.findings import Severity
from ..doctor.installation import this_installation
from ..doctor.trials import MODES
from ..host_entries import BUNDLE
from ..hosts import installing
from ..hosts.checking import public_arguments
from ..hosts.clients import get_client
from ..hosts.configured import parse_entry, read_entries
from ..hosts.differences import find_differences
from ..hosts.installing import Change, Target
from ..hosts.launching import launch_command, local_command
from ..hosts.shareable import has_own_paths, shareable
from ..terminal.output import console, wrap
from .config import EntryChoice, HostParser, choose_entry

TRIAL_SECONDS = 60.0
"""Seconds that the server has to answer: uvx may first have to download packages. Clients wait about as long."""

_STYLES = {"-": "red", "+": "green", " ": "dim"}


def main(argv: Sequence[str]) -> int:
    """Show the change and make it; return the exit code."""
    parser = _parser("install", "Add a server to a client's configuration; nothing else changes.")
    parser.add_switch(
        "--replace", "replace an entry with that name even if install did not add it, or it was changed since then"
    )
    parser.add_server()
    options, arguments = parser.read(argv)
    try:
        selection = choose_entry(options, arguments)
        with _target_of(options) as target:
            if options.scope == "project":
                server = shareable(selection.client, target.machine, Path.cwd(), selection.server)
                selection = selection._replace(server=server)
            change = installing.install(target, selection.server, options.replace)
            notes, title = [*change.notes], target.client.title
            former = _former_arguments(target, selection)
            if former is not None and not change.is_empty:
                notes.append(f"the previous arguments: {former}")
            if options.scope == "project" and has_own_paths(target.machine, Path.cwd(), selection.server):
                notes.append(f"the file is shared, and {title} has no notation for paths on this machine")
            if options.scope == "user" and change.before is None:
                notes.append(f"{title} had no such file, so check that {title} is installed")
            change = change._replace(notes=tuple(notes))
            _show_and_make(change, selection.secrets, options.dry_run)
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    if options.dry_run:
        return 0
    directory = Path(target.machine.home) if options.scope == "user" else Path.cwd()
    client, entry, words = selection.client, selection.entry, selection.words
    launch = Launch(client, target.path, directory, selection.server, entry, words, entry is BUNDLE)
    # Try the server. Keep the entry even if the trial fails, so that the user can correct it.
    out = console()
    with out.status(f"starting it as {launch.client.title} will"):
        attempt = partial(try_launch, launch, target.machine, this_installation(), TRIAL_SECONDS, modes=MODES[:1])
        trial = anyio.run(attempt)
    for finding in trial.findings:
        if finding.severity is not Severity.OK:
            out.print(wrap(out, plain(f"{finding.severity}: {finding.what}. Fix: {finding.fix}")))
    if trial.tools is not None:
        out.print(f"works: {trial.tools} {'tool' if trial.tools == 1 else 'tools'}")
    elif any(finding.severity is Severity.FAULT for finding in trial.findings):
        out.print("the server does not work yet, but its entry was kept; run install again, or uninstall")
        return 1
    else:
        out.print(plain("; ".join(finding.what for finding in trial.findings if finding.severity is Severity.OK)))
    out.print(f"done: now {launch.client.reload_action}")
    return 0


def _former_arguments(target: Target, selection: EntryChoice) -> str | None:
    """Return the arguments of the entry that is replaced, without secrets, for display. None if there is no such
    entry, or if it starts another program, since that one's secret arguments are unknown."""
    existing = read_entries(target.client, target.path).get(selection.server.name)
    if existing is None or selection.entry is BUNDLE:
        return None
    launch, program = parse_entry(target.client, selection.server.name, existing), launch_command(selection.entry)
    words = [] if launch is None else [launch.command or "", *launch.args]
    if words[: len(program)] != program:
        return None
    shown = public_arguments(selection.entry, words[len(program) :])
    return None if shown is None else shlex.join(shown) or "none"


def uninstall(argv: Sequence[str]) -> int:
    """Show the change and make it; return the exit code."""
    parser = _parser("uninstall", "Remove a server from a client's configuration; nothing else changes.")
    options, arguments = parser.read(argv)
    try:
        if arguments:
            raise ValueError(f"the argument {arguments[0]!r} is not allowed: specify only the name of the server")
        (server,) = options.servers
        entries = {entry.name: entry for entry in load_catalog(options.catalog).servers}
        with _target_of(options) as target:
            entry = entries.get(server, BUNDLE)
            try:
                program = launch_command(entry)
            except ValueError:
                # The wheel from which uvx installs the server no longer exists. Compare with the command of this
                # installation.
                program = local_command(entry)
            change = installing.uninstall(target, options.name or server, program)
            _show_and_make(change, frozenset(), options.dry_run)
            if not options.dry_run:
                console().print(f"done: {target.client.title} drops the server when it is restarted")
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    return 0


def _parser(name: str, description: str) -> HostParser:
    """Return the parser of a command that changes the file of a client."""
    parser = HostParser(name, description)
    parser.add_entry()
    parser.add_scope()
    parser.add_switch("--dry-run", "show the changes without making them")
    return parser


@contextmanager
def _target_of(options: Namespace) -> Iterator[Target]:
    """Yield the file to change. Unless this is a dry run, it is locked against other commands of this kind during the
    block. Raises ValueError if the client has no such file, or if it can't be locked."""
    target = Target.of(get_client(options.client), this_machine(), options.scope, Path.cwd())
    with nullcontext() if options.dry_run else target.lock():
        yield target


def _show_and_make(change: Change, secrets: Set[str], dry_run: bool) -> None:
    """Print the change to the file, and make it unless `dry_run` is true.

    Raises ValueError if the change can't be made.
    """
    out = console()
    path = change.target.path
    if change.is_empty:
        out.print(f"{path} already has this entry")
        return
    is_new, is_gone = change.before is None, change.after is None
    deletion = ": deleted, because install created it and it contains nothing else"
    suffix = ": a new file" if is_new else deletion if is_gone else ""
    out.print(f"{path}{suffix}")
    before, after = change.before or b"", change.after or b""
    for line in find_differences(change.target.client, before, after, change.shown, secrets):
        out.print(Text(f"{line.sign} {plain(line.text.expandtabs())}", style=_STYLES[line.sign]))
    for note in change.notes:
        out.print(wrap(out, plain(f"note: {note}")))
    if dry_run:
        out.print("nothing was changed, because of --dry-run")
        return
    backup = change.apply()
    if backup is not None:
        out.print(f"backup of the previous file: {backup}")
