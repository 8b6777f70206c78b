"""Opens libraries in git or packages for the commands, and implements the command `update`."""

from collections.abc import Sequence
from pathlib import Path
from threading import Event

from ..errors import PromptError
from ..remote.address import Address, Package
from ..remote.cache import Checkout
from .commands import UsageError, print_line

_TIMEOUT_SECONDS = 600.0


def open_remote(address: Address | Package) -> Path:
    """Return the folder with the library at the address. A library in git is fetched only the first time, a package
    whenever it has changed. Raises UsageError."""
    checkout = Checkout(address)
    checkout.load()
    if checkout.commit is None or isinstance(address, Package):
        try:
            checkout.update(Event(), _TIMEOUT_SECONDS)
        except PromptError as error:
            raise UsageError(error.reason) from None
    return checkout.root


def update(addresses: Sequence[Address]) -> int:
    """Fetch the current commit of each address, and print it. Return 1 if one can't be fetched. A server that is
    running with such a library serves the new commit within seconds."""
    failures = 0
    for address in addresses:
        checkout = Checkout(address)
        checkout.load()
        before = checkout.commit
        try:
            changed = checkout.update(Event(), _TIMEOUT_SECONDS)
        except PromptError as error:
            failures += 1
            print_line(error.reason)
            continue
        current = f"commit {checkout.commit}"
        what = (
            current if before is None else f"{current}, previously {before}" if changed else f"{current}, unchanged"
        )
        print_line(f"{address}: {what}")
        for problem in checkout.problems():
            print_line(f"  {problem}")
    return 1 if failures else 0
