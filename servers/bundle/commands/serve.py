"""`python -m servers serve`: several servers in one process, on one port."""

import os
from collections.abc import Sequence

from servers.catalog import CATALOG, load_catalog
from servers.gateway.serve.choice import EPILOG, choose_joined
from servers.gateway.serve.configuration import OPTIONS, Configuration, read_configuration
from servers.gateway.serve.selection import Selection, WorkbenchOptions
from shared.program.messages import exit_with_error, missing_extra_message
from shared.program.process import LOOPBACK, Options, lacks_http_extra, open_standard_streams
from shared.program.settings.option_parser import OptionParser
from shared.program.settings.options import Group, read_options
from shared.program.worker import has_workers

from ..program_name import program_name


def main(argv: Sequence[str]) -> int:
    """Serve until a signal ends it; return the exit code."""
    open_standard_streams()
    parser = OptionParser(
        f"{program_name()} serve",
        [
            Group({**Selection.model_fields, **WorkbenchOptions.model_fields}),
            Group(OPTIONS, "common server options", "MCP"),
        ],
        "Serve several servers on one port, each at /NAME/mcp, and the workbench, a web page that uses them, at /.",
        EPILOG,
    )
    arguments = parser.read(argv)
    try:
        own = read_options(Selection, arguments)
        configuration = Configuration() if own.config is None else read_configuration(own.config)
        # The transport is always HTTP here.
        options = read_options(Options, {**arguments, "transport": "http"}, os.environ, "MCP", configuration.options)
        workbench = read_options(WorkbenchOptions, arguments, file=configuration.workbench)
        is_local = options.host in LOOPBACK
        catalog = load_catalog(own.catalog or CATALOG)
        choice = choose_joined(own.names, catalog, configuration, arguments, is_local=is_local)
        third_party = sorted(configuration.third_party_servers().keys() & {server.name for server in choice.servers})
        if options.workers > 1 and third_party:
            reason = "has sessions that belong to one process, so no other process can continue them"
            raise ValueError(f"--workers: {third_party[0]} {reason}; serve it separately")
        if lacks_http_extra():
            raise ValueError(missing_extra_message("http"))
    except ValueError as error:
        exit_with_error(parser.program, str(error))
    secrets = [configuration.exposed(configuration.options, OPTIONS), *(server.exposed for server in choice.servers)]
    exposed = next(filter(None, secrets), None)
    if has_workers(options):
        from shared.program.workers import supervise

        return supervise(parser.program, options, exposed)
    from servers.gateway.serve.over_http import run_all

    from ..workbench.front import Workbench

    return run_all(parser.program, options, choice, exposed, None if workbench.no_page else Workbench().answer)
