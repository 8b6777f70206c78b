"""`python -m servers open`: serve the configured servers to this machine, and open the workbench in the browser."""

import os
import sys
import webbrowser
from collections.abc import Sequence
from threading import Thread

from pydantic import Field

from servers.catalog import CATALOG, load_catalog
from servers.gateway.serve.choice import EPILOG, choose_joined
from servers.gateway.serve.configuration import OPTIONS, Configuration, read_configuration
from servers.gateway.serve.selection import Selection
from shared.program.messages import exit_with_error, missing_extra_message
from shared.program.process import Options, lacks_http_extra, open_standard_streams
from shared.program.settings.option_parser import OptionParser
from shared.program.settings.options import Group, read_options

from ..program_name import program_name

_LOCAL_SETTINGS = {"host": "127.0.0.1", "port": "0", "workers": "1"}
"""Values that override those in the configuration: these are meant for `serve`, which may be running with them."""


class _OpenOptions(Selection):
    port: int = Field(0, ge=0, le=65535, description="port to bind (default: a free port)")
    no_browser: bool = Field(False, description="only print the URL")


def main(argv: Sequence[str]) -> int:
    """Serve until a signal ends it; return the exit code."""
    open_standard_streams()
    common = {name: field for name, field in OPTIONS.items() if name not in _LOCAL_SETTINGS}
    parser = OptionParser(
        f"{program_name()} open",
        [Group(_OpenOptions.model_fields), Group(common, "common server options", "MCP", is_rare=True)],
        "Serve several servers to this machine only, and open the workbench in the browser, where you can see and "
        "use them.",
        EPILOG,
    )
    arguments = parser.read(argv)
    try:
        own = read_options(_OpenOptions, arguments)
        configuration = Configuration() if own.config is None else read_configuration(own.config)
        values = {**_LOCAL_SETTINGS, **arguments, "transport": "http"}
        options = read_options(Options, values, os.environ, "MCP", configuration.options)
        choice = choose_joined(own.names, load_catalog(own.catalog or CATALOG), configuration, arguments)
        if lacks_http_extra():
            raise ValueError(missing_extra_message("http"))
    except ValueError as error:
        exit_with_error(parser.program, str(error))
    secrets = [configuration.exposed(configuration.options, OPTIONS), *(server.exposed for server in choice.servers)]
    from servers.gateway.serve.over_http import run_all

    from ..workbench.front import Workbench

    def announce(url: str) -> None:
        print(f"the workbench is at {url}; press Ctrl+C to stop", file=sys.stderr, flush=True)  # noqa: T201 - for people
        if not own.no_browser:
            # In a thread, because a browser in the terminal blocks until the user leaves it.
            Thread(target=_browse, args=[url], daemon=True).start()

    exposed = next(filter(None, secrets), None)
    return run_all(parser.program, options, choice, exposed, Workbench().answer, announce)


def _browse(url: str) -> None:
    if not webbrowser.open(url):
        print(f"no browser could be opened: open {url} yourself", file=sys.stderr, flush=True)  # noqa: T201
