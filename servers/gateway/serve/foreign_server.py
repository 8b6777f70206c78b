"""The server that a server of others is to our clients: a bridge to it, behind what its operator allows."""

import logging
from typing import Any

from shared import Server

from ..bridge.bridge import bridge
from ..rules.extension import rules
from ..rules.pins import Pins
from .foreign import Foreign, pins_path


def hear_commands(level: str) -> None:
    """Has the log say what commands write to stderr, unless only errors are wanted: nobody sees their terminal."""
    if level != "error":
        logging.getLogger("shared.transports.process").setLevel(logging.INFO)


def foreign_server(one: Foreign) -> Server[Any]:
    """A declaration to be opened. Raises ValueError, in one line, for pins that can't be read."""
    pins = Pins(pins_path(one.path, one.name)) if one.settings.pin else None
    return bridge(one.upstream, extensions=[rules(one.rules, pins=pins, name=one.name)])
