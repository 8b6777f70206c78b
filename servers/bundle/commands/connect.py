"""`python -m servers connect URL`: relays a server at a URL over stdio, for hosts that support only stdio."""

import os
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from pydantic import BaseModel

from servers.gateway.proxy.bridge_program import BridgeOptions, BridgeProgram
from servers.gateway.proxy.options import OVER_STDIO, PREFIX, read_common
from servers.gateway.proxy.remote import Remote, connect_as_user
from servers.gateway.proxy.urls import display_url
from servers.gateway.serve.values import read_value
from shared.program.messages import exit_with_error, missing_extra_message
from shared.program.process import open_standard_streams
from shared.program.settings.option_parser import OptionParser
from shared.program.settings.options import Group, option, positional, read_options, secret

from ..program_name import program_name

_OWN = "MCP_CONNECT"


class _Target(BaseModel):
    url: list[str] = positional("URL of the server: http://, https://, ws:// or wss://", "URL")


class _Credentials(BaseModel):
    token_file: Path | None = option(None, "file with the bearer token to send to the server", "FILE")
    token: str | None = secret(None, "the token itself")
    header: list[str] = option([], "header to send to the server", "NAME=VALUE")


def main(argv: Sequence[str]) -> int:
    """Serve until the client disconnects; return the exit code."""
    open_standard_streams()
    parser = OptionParser(
        f"{program_name()} connect",
        [
            Group(_Target.model_fields),
            Group({**_Credentials.model_fields, **BridgeOptions.model_fields}, "options of connect", _OWN),
            Group(OVER_STDIO, "common server options", PREFIX),
        ],
        "Relay a server at a URL to a host that starts its servers and talks to them over stdio. Both may speak "
        "any version of the protocol. A lost connection is restored.",
        f"Each option can also be set by the environment variable in brackets, and the token by {_OWN}_TOKEN. Other "
        "users can see command lines, so a secret belongs in a file or a variable.",
        "[OPTION ...] URL",
    )
    arguments = parser.read(argv)
    try:
        options = read_common(arguments, "stdio")
        bridge_options = read_options(BridgeOptions, arguments, os.environ, _OWN)
        credentials = read_options(_Credentials, arguments, os.environ, _OWN)
        urls = read_options(_Target, arguments).url
        if len(urls) != 1:
            raise ValueError("specify exactly one URL, such as https://mcp.example.org/mcp")
        try:
            token_file = credentials.token_file
            token, is_exposed = (credentials.token, False) if token_file is None else read_value(token_file)
        except ValueError as error:
            raise ValueError(f"--token-file: {error}") from None
        remote = Remote.of(urls[0], credentials.header, token)
        if find_spec("aiohttp") is None:
            raise ValueError(missing_extra_message("client"))
        advice = "" if remote.has_token else "; send a token with --token-file, or run `login`"
        connect_remote = partial(connect_as_user, remote.url, headers=remote.headers)
        bridge_program = BridgeProgram(display_url(remote.url), connect_remote, bridge_options, advice=advice)
    except ValueError as error:
        exit_with_error(parser.program, str(error))
    return bridge_program.run(parser.program, options, exposed=str(token_file) if is_exposed else None)
