"""`python -m servers expose -- COMMAND`: serves a stdio server, which COMMAND starts, over HTTP."""

import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pydantic import BaseModel, Field

from servers.gateway.bridge.upstream import MAX_PROCESSES
from servers.gateway.proxy.bridge_program import BridgeOptions, BridgeProgram
from servers.gateway.proxy.options import OVER_HTTP, PREFIX, read_common
from servers.gateway.serve.bridge_server import log_commands
from shared.client.connect import connect
from shared.program.messages import exit_with_error
from shared.program.process import open_standard_streams
from shared.program.settings.option_parser import OptionParser
from shared.program.settings.options import Group, option, positional, read_options

from ..program_name import program_name
from ..terminal.command_parser import read_variable

_EXPOSE_PREFIX = "MCP_EXPOSE"


class _Command(BaseModel):
    command: list[str] = positional("command that starts the server, and its arguments, after --", "COMMAND")


class _ProcessOptions(BaseModel):
    shared: bool = Field(False, description="use one process for all clients, instead of one for each session")
    processes: int = Field(
        MAX_PROCESSES, ge=1, description="maximum number of processes; one client may use half of them"
    )
    env: list[str] = option(
        [], "environment variable for the command; NAME alone passes on its current value", "NAME[=VALUE]"
    )


def main(argv: Sequence[str]) -> int:
    """Serve until a signal ends it; return the exit code."""
    open_standard_streams()
    parser = OptionParser(
        f"{program_name()} expose",
        [
            Group(_Command.model_fields),
            Group(
                {**_ProcessOptions.model_fields, **BridgeOptions.model_fields}, "options of expose", _EXPOSE_PREFIX
            ),
            Group(OVER_HTTP, "common server options", PREFIX),
        ],
        "Start a stdio server with a command, and serve it over HTTP. Server and clients may speak any version of "
        "the protocol. The command's stderr is logged, and the command is restarted if it ends.",
        "Each option can also be set by the environment variable in brackets.",
        "[OPTION ...] -- COMMAND [ARGUMENT ...]",
    )
    arguments = parser.read(argv)
    try:
        options = read_common(arguments, "http")
        bridge_options = read_options(BridgeOptions, arguments, os.environ, _EXPOSE_PREFIX)
        process_options = read_options(_ProcessOptions, arguments, os.environ, _EXPOSE_PREFIX)
        command = read_options(_Command, arguments).command
        if not command:
            raise ValueError("specify the command that starts the server after `--`, such as -- npx -y some-server")
        if shutil.which(command[0]) is None:
            is_there = Path(command[0]).exists()
            raise ValueError(f"{command[0]}: {'it is not a program' if is_there else 'there is no such program'}")
        connect_to_command = partial(connect, command, env=dict(map(read_variable, process_options.env)))
        bridge_program = BridgeProgram(
            Path(command[0]).name,
            connect_to_command,
            bridge_options,
            shares_session=process_options.shared,
            max_processes=process_options.processes,
        )
    except ValueError as error:
        exit_with_error(parser.program, str(error))
    log_commands(options.log_level)
    return bridge_program.run(parser.program, options)
