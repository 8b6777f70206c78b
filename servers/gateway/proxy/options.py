"""The options of a program with another server behind it: those of every server that mean something there."""

import os
from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from pydantic.fields import FieldInfo

from shared.program import process
from shared.program.replication import ReplicaOptions
from shared.program.settings.options import Words, read_options, variable_of

PREFIX = "MCP"
"""What the variables of these options begin with, as with every server."""

_OF_HTTP = (
    *("host", "port", "path", "allowed_host", "allowed_origin", "token_file", "token", "no_auth", "cards"),
    *("max_sessions", "idle_seconds", "tokens_file", "public_url", "max_rate", "max_burst"),
    *("trusted_proxy", "access_log"),
    *("max_client_calls", "max_client_sessions", "max_client_bytes"),
    *(name for name in process.Options.model_fields if name.startswith("auth_")),
    *ReplicaOptions.model_fields,
)
# How much one answer may hold is a matter of the server behind it, and what it keeps of a session is in one process.
_MEANINGLESS = ("settings", "transport", "max_result", "max_entries", "workers")


class Options(process.Options):
    """As a server of ours has them, but for the time: how long its calls take is the other server's matter."""

    max_seconds: float = Field(600.0, gt=0, description="seconds that one call may take")


OVER_HTTP: Mapping[str, FieldInfo] = {
    name: field for name, field in Options.model_fields.items() if name not in _MEANINGLESS
}
"""Those of a program that serves a port."""
OVER_STDIO: Mapping[str, FieldInfo] = {name: field for name, field in OVER_HTTP.items() if name not in _OF_HTTP}
"""Those of a program that one client starts."""


def read_common(given: Words, transport: Literal["stdio", "http"]) -> Options:
    """The options, from the command line and the environment; none is looked at that means nothing here.

    Raises ValueError, in one line, for one that is wrong.
    """
    known = OVER_STDIO if transport == "stdio" else OVER_HTTP
    words = {name: words for name, words in given.items() if name in known}
    variables = {variable: os.environ.get(variable, "") for variable in (variable_of(one, PREFIX) for one in known)}
    return read_options(Options, {**words, "transport": transport}, variables, PREFIX)
