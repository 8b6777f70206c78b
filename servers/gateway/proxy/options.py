"""Options of a program that relays another server: those of every server, without those that do not apply."""

import os
from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from pydantic.fields import FieldInfo

from shared.program import process
from shared.program.replication import ReplicaOptions
from shared.program.settings.options import LineValues, read_options, variable_of

PREFIX = "MCP"
"""The prefix of the environment variables of these options, as with every server."""

_HTTP_OPTIONS = (
    *("host", "port", "path", "allowed_host", "allowed_origin", "token_file", "token", "no_auth", "cards"),
    *("max_sessions", "idle_seconds", "tokens_file", "public_url", "max_rate", "max_burst"),
    *("trusted_proxy", "access_log"),
    *("max_client_calls", "max_client_sessions", "max_client_bytes"),
    *(name for name in process.Options.model_fields if name.startswith("auth_")),
    *ReplicaOptions.model_fields,
)
# The server behind the program limits its own results, and the sessions with it can't be divided among workers.
_INAPPLICABLE = ("settings", "transport", "max_result", "max_entries", "workers")


class Options(process.Options):
    """The options of every server, with a longer time limit for calls: the server behind the program limits them
    too."""

    max_seconds: float = Field(600.0, gt=0, description="seconds that one call may take")


OVER_HTTP: Mapping[str, FieldInfo] = {
    name: field for name, field in Options.model_fields.items() if name not in _INAPPLICABLE
}
"""The options of a program that serves clients on a port."""
OVER_STDIO: Mapping[str, FieldInfo] = {name: field for name, field in OVER_HTTP.items() if name not in _HTTP_OPTIONS}
"""The options of a program that one client starts."""


def read_common(arguments: LineValues, transport: Literal["stdio", "http"]) -> Options:
    """Read the options from the command line and the environment; options that do not apply here are ignored.

    Raises ValueError with a one-line message for an invalid one.
    """
    allowed = OVER_STDIO if transport == "stdio" else OVER_HTTP
    words = {name: words for name, words in arguments.items() if name in allowed}
    variables = {
        variable: os.environ.get(variable, "") for variable in (variable_of(option, PREFIX) for option in allowed)
    }
    return read_options(Options, {**words, "transport": transport}, variables, PREFIX)
