"""The machine this runs on, as `clients.Machine` wants to know it."""

import os
import sys
from pathlib import Path

from .clients import Machine

__all__ = ["this_machine"]


def this_machine() -> Machine:
    """This machine. Raises ValueError where nobody knows the user's home directory."""
    try:
        home = Path.home()
    except RuntimeError as error:
        raise ValueError(f"there is no home directory: {error}") from None
    if sys.platform == "win32":
        return Machine("windows", home, os.environ)
    return Machine("macos" if sys.platform == "darwin" else "linux", home, os.environ)
