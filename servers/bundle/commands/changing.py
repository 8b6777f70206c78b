"""What `install` and `uninstall` have in common: they show a change, and make it."""

from argparse import Namespace
from collections.abc import Iterator, Set
from contextlib import contextmanager, nullcontext
from pathlib import Path

from rich.text import Text

from shared.kit.program import plain

from ..hosts.clients import client_named
from ..hosts.differences import differences
from ..hosts.installing import Change, Target
from ..hosts.machine import this_machine
from .hosting import HostParser
from .showing import console

__all__ = ["changing_parser", "show_and_make", "target_of"]

_STYLES = {"-": "red", "+": "green", " ": "dim"}


def changing_parser(name: str, description: str) -> HostParser:
    """The parser of a command that changes the file of a client."""
    parser = HostParser(name, description)
    parser.add_entry()
    parser.add_scope()
    parser.add_switch("--dry-run", "show what would change, and change nothing")
    return parser


@contextmanager
def target_of(options: Namespace) -> Iterator[Target]:
    """The file that is to be changed, by no other of these commands meanwhile. Raises ValueError."""
    target = Target.of(client_named(options.client), this_machine(), options.scope, Path.cwd())
    with nullcontext() if options.dry_run else target.held():
        yield target


def show_and_make(change: Change, secrets: Set[str], dry_run: bool, then: str) -> None:
    """Shows what changes in the file, and makes the change unless it is a `dry_run`; says what comes `then`.

    Raises ValueError where it can't be made.
    """
    out = console()
    path = change.target.path
    if change.is_none:
        out.print(f"{path} says so already")
        return
    is_new, is_gone = change.before is None, change.after is None
    told = ": a new file" if is_new else ": it goes, since nothing else stands in it" if is_gone else ""
    out.print(f"{path}{told}")
    before, after = change.before or b"", change.after or b""
    for line in differences(change.target.client, before, after, change.shown, secrets):
        out.print(Text(f"{line.sign} {plain(line.text.expandtabs())}", style=_STYLES[line.sign]))
    if dry_run:
        out.print("nothing was changed, as --dry-run asks")
        return
    backup = change.make()
    kept = f"; the file as it was: {backup}" if backup is not None else ""
    out.print(f"done: {then}{kept}")
