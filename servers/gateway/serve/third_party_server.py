"""The server for one third-party server: a bridge to it, within the rules of its operator."""

import logging
from typing import Any

from shared import Server

from ..bridge.bridge import bridge
from ..rules.extension import rules
from ..rules.pins import Pins
from .third_party import Foreign, pins_path


def log_commands(level: str) -> None:
    """Log the stderr output of commands, unless the level is `error`: they have no terminal."""
    if level != "error":
        logging.getLogger("shared.transports.process").setLevel(logging.INFO)


def foreign_server(foreign: Foreign) -> Server[Any]:
    """Return the declaration of a server, to be opened later. Raises ValueError with a one-line message for pins that
    can't be read."""
    pins = Pins(pins_path(foreign.path, foreign.name)) if foreign.settings.pin else None
    return bridge(foreign.upstream, extensions=[rules(foreign.rules, pins=pins, name=foreign.name)])
