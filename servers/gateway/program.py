"""The program that a client starts to use several servers as one."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from servers.catalog import CATALOG, load_catalog
from shared.program.messages import exit_with_error
from shared.program.process import Options, open_standard_streams
from shared.program.settings.option_parser import OptionParser
from shared.program.settings.options import Group, option, positional, read_options

from .proxy.options import OVER_STDIO
from .serve.choice import EPILOG, choose_joined
from .serve.configuration import OPTIONS, Configuration, read_configuration
from .serve.over_stdio import JoinedProgram

_OPTIONS: Mapping[str, FieldInfo] = {
    name: field for name, field in OPTIONS.items() if name in {*OVER_STDIO, "max_result", "max_entries"}
}


class _JoinOptions(BaseModel):
    names: list[str] = positional("server to join (default: those in the configuration, or all)", "NAME")
    join: bool = Field(False, description="serve several servers as one; without it, run NAME starts one server")
    config: Path | None = option(None, "YAML file of servers and their settings, as for `serve`", "FILE")
    catalog: Path | None = option(None, "catalog to use instead of the bundle's", "FILE")
    prefix: Literal["auto", "always"] = Field(
        "auto", description="when to prefix names with the name of their server: always, or only if two are the same"
    )


def run_gateway(program: str, argv: Sequence[str], *, is_command: bool = False) -> int:
    """Serve until the client or a signal ends the program; return the exit code. `program` is the name with which it
    was started. `is_command` is true for a command that does this only with `--join`, and something else without."""
    open_standard_streams()
    fields = {name: field for name, field in _JoinOptions.model_fields.items() if is_command or name != "join"}
    parser = OptionParser(
        program,
        [Group(fields), Group(_OPTIONS, "common server options", "MCP")],
        "Serve several servers as one over stdio, so that a client needs only one entry for all of them.",
        EPILOG,
        "--join [OPTION ...] [NAME ...]" if is_command else None,
    )
    arguments = parser.read(argv)
    try:
        own = read_options(_JoinOptions, arguments)
        configuration = Configuration() if own.config is None else read_configuration(own.config)
        options = read_options(Options, {**arguments, "transport": "stdio"}, os.environ, "MCP", configuration.options)
        words_of = {name: words for name, words in arguments.items() if name != "join"}
        choice = choose_joined(own.names, load_catalog(own.catalog or CATALOG), configuration, words_of)
        # The named servers are joined, or else those that the configuration joins, or all.
        names = [] if own.names else choice.joined
        servers = [server for server in choice.servers if server.name in names or not names]
        joined = JoinedProgram(servers, choice.prefix, options)
    except ValueError as error:
        exit_with_error(parser.program, str(error))
    return joined.run(parser.program, next(filter(None, (server.exposed for server in servers)), None))
