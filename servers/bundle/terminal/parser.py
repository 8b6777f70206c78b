"""Command line parsers of `call`, `read`, `watch`, `prompt` and `inspect`."""

import os
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from servers.gateway.proxy.remote import read_token
from shared.program.messages import exit_with_error
from shared.protocol.wire.codec import Framing
from shared.protocol.wire.dialects import CLIENT_DIALECTS

from .command_parser import CommandParser, read_variable
from .exit_codes import Misuse
from .session import ProtocolVariant, Session
from .targets import FORMS, ServerChoice

_CODES = "Exit codes: 0 done, 1 the server returned an error, 2 incorrect usage, 3 no connection or no answer."


class SessionParser(CommandParser):
    """The parser of a command that talks to one server."""

    def __init__(self, name: str, rest: str, description: str) -> None:
        """`rest` is the usage after SERVER."""
        super().__init__(name, description)
        self.usage = f"{self.prog} SERVER{rest}\n       [OPTION ...] [-- ARGUMENT ...]"
        self.epilog = f"{FORMS} {_CODES}"
        self.add_argument(
            "server", metavar="SERVER", help="server to use; the end of this help lists the possible forms"
        )

    def add_options(self) -> None:
        """Add the options that all of these commands have. Call this last, so that the help lists them last."""
        self.add_json()
        self.add_argument(
            "--timeout", type=_read_seconds, default=60.0, metavar="SECONDS",
            help="time limit for startup and for each answer (default: 60)",
        )  # fmt: skip
        text = "dialect of the server, if it does not follow the specification"
        self.add_argument("--dialect", choices=CLIENT_DIALECTS, help=text)
        text = "how messages on stdio are separated"
        self.add_argument("--framing", choices=get_args(Framing), help=text)
        self.add_argument("--verbose", action="store_true", help="show the server's log messages, on stderr")
        text = "environment variable for a started server; NAME alone passes on its current value"
        self.add_argument("--env", action="append", default=[], metavar="NAME[=VALUE]", help=text)
        text = "header to send to a URL; may be repeated"
        self.add_argument("--header", action="append", default=[], metavar="NAME:VALUE", help=text)
        self.add_argument("--token-file", type=Path, metavar="FILE", help="file with the bearer token for a URL")
        self.add_argument("--token-variable", metavar="NAME", help="variable with the bearer token for a URL")
        self.add_catalog()

    def read(self, argv: Sequence[str]) -> tuple[Namespace, Session]:
        """Parse the command line. Return the options of the command, and the session with its settings."""
        end = argv.index("--") if "--" in argv else len(argv)
        options = self.parse_intermixed_args(argv[:end])
        try:
            words = tuple(argv[end + 1 :])
            headers: dict[str, str] = {}
            for text in options.header:
                name, colon, value = text.partition(":")
                if not colon:
                    raise Misuse("--header takes NAME:VALUE")
                headers[name.strip()] = value.strip()
            # There is no option for a token itself, since other users can read command lines.
            variable = options.token_variable
            if variable is not None and not os.environ.get(variable):
                raise Misuse(f"--token-variable: {variable} is empty or not set")
            if options.token_file is not None:
                headers["Authorization"] = f"Bearer {read_token(options.token_file)}"
            elif variable is not None:
                headers["Authorization"] = f"Bearer {os.environ[variable]}"
            env = dict(map(read_variable, options.env))
            request = ServerChoice(options.server, words, options.catalog, env, headers)
            variant = ProtocolVariant(options.dialect, options.framing)
            return options, Session(self.prog, request, options.timeout, options.verbose, variant)
        except (Misuse, ValueError) as error:
            exit_with_error(self.prog, str(error))


def _read_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds < float("inf"):
        raise ArgumentTypeError("must be a number of seconds")
    return seconds
