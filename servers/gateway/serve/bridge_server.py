"""The bridge to one third-party server, with the rules of the operator applied."""

import logging
from typing import Any

from shared import Server

from ..bridge.bridge import bridge
from ..rules.extension import rules
from ..rules.pins import Pins
from .third_party import ThirdPartyServer, pins_path


def log_commands(level: str) -> None:
    """Log what commands write to stderr, since they have no terminal, unless the log level is `error`."""
    if level != "error":
        logging.getLogger("shared.transports.process").setLevel(logging.INFO)


def make_bridge_server(server: ThirdPartyServer) -> Server[Any]:
    """Return a bridge to `server`, which is opened later. Raises ValueError with a one-line message if the file of
    the pins can't be read."""
    pins = Pins(pins_path(server.path, server.name)) if server.settings.pin else None
    return bridge(server.upstream, extensions=[rules(server.rules, pins=pins, name=server.name)])
