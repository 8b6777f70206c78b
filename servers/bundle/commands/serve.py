"""`python -m servers serve`: several servers in one process, on one port."""

import os
from collections.abc import Sequence
from pathlib import Path

from shared.kit.extras import needs_extra
from shared.program.options import OptionParser, add_options, complain, read_options
from shared.program.process import Options, missing_extra, open_standard_streams

from ..catalog import CATALOG, load_catalog
from ..program import program
from ..serve.choosing import DEFAULTS, choose
from ..serve.configuration import OPTIONS, Configuration, read_configuration

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Serves until a signal ends it; the exit code."""
    open_standard_streams()
    parser = _parser()
    given = parser.read(argv)
    # What is said of one server alone has no meaning here.
    given.transport = "http"
    try:
        configuration = Configuration() if given.config is None else read_configuration(given.config)
        options = read_options(Options, given, os.environ, "MCP", configuration.options)
        chosen = choose(given.names, load_catalog(given.catalog), configuration)
        if missing_extra():
            raise ValueError(needs_extra("http"))
    except ValueError as error:
        complain(parser, str(error))
    exposed = [configuration.exposed(configuration.options, OPTIONS), *(one.exposed for one in chosen)]
    from ..serve.running import run_all

    return run_all(parser, options, chosen, next(filter(None, exposed), None))


def _parser() -> OptionParser:
    useful = "; ".join(f"{module.removeprefix('servers.')}: {words}" for module, (words, _) in DEFAULTS.items())
    parser = OptionParser(
        f"{program()} serve",
        "Serve several servers on one port, each at /NAME/mcp. / says what runs and how to connect.",
        f"Without --config: {useful}. Each option can also be set by the environment variable in brackets, and so "
        "can those of the servers, as their own --help says.",
    )
    parser.usage = "%(prog)s [OPTION ...] [NAME ...]"
    parser.unnamed = "names"
    parser.add_argument("names", nargs="*", metavar="NAME", help="server to serve (default: all that are configured)")
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="YAML file of these options by their names, such as log-level, and of the settings of each server under "
        "servers: NAME:; paths begin at its directory",
    )
    parser.add_argument(
        "--catalog", type=Path, default=CATALOG, metavar="FILE", help="catalog of other servers to use instead"
    )
    add_options(parser, OPTIONS, "options of every server", "MCP")
    return parser
