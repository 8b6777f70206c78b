"""Libraries in git or packages, for commands: fetched, or as of the last fetch."""

from collections.abc import Sequence
from pathlib import Path
from threading import Event

from servers.prompts.cli.commands import UsageError, say
from servers.prompts.errors import PromptError
from servers.prompts.remote.address import Address, Package
from servers.prompts.remote.cache import Checkout

_SECONDS = 600.0


def open_remote(address: Address | Package) -> Path:
    """Return the folder with the library at the address, fetched if it is missing. Raises UsageError."""
    checkout = Checkout(address)
    checkout.load()
    if checkout.commit is None or isinstance(address, Package):
        try:
            checkout.update(Event(), _SECONDS)
        except PromptError as error:
            raise UsageError(error.reason) from None
    return checkout.root


def update(addresses: Sequence[Address]) -> int:
    """Fetch the current commits of the addresses, and print them; return 1 if one can't be fetched. A running server
    with one of them serves the new commit within seconds."""
    failures = 0
    for address in addresses:
        checkout = Checkout(address)
        checkout.load()
        before = checkout.commit
        try:
            changed = checkout.update(Event(), _SECONDS)
        except PromptError as error:
            failures += 1
            say(error.reason)
            continue
        current = f"commit {checkout.commit}"
        what = (
            current if before is None else f"{current}, previously {before}" if changed else f"{current}, unchanged"
        )
        say(f"{address}: {what}")
        for problem in checkout.problems():
            say(f"  {problem}")
    return 1 if failures else 0
