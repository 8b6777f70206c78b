"""Where the pins of a server of others are kept."""

import os
from hashlib import sha256
from pathlib import Path

from ..hosts.clients import Machine, state_folder, this_machine


def pins_path(configuration: Path, name: str, machine: Machine | None = None) -> Path:
    """The file with the pins of the server called `name` in the `configuration`: `NAME.pins.json` beside that, or one
    in the user's own directory for such things, where no file can be made there. Raises ValueError where nobody knows
    the home directory."""
    beside = configuration.absolute().parent / f"{name}.pins.json"
    if beside.exists() or os.access(beside.parent, os.W_OK):
        return beside
    # Those of each configuration have the same name.
    digest = sha256(os.fsencode(configuration.absolute())).hexdigest()[:12]
    return Path(state_folder(machine or this_machine())) / "pins" / f"{digest}-{name}.pins.json"
