"""`python -m servers run NAME`: start one server by name, or with `--join` several as one
(`servers/gateway/program.py`).

Clients that install a package from the MCP registry start the program with the name of the package, and pass it
arguments. So they start a server with `mcp-server-bundle run filesystem DIR`, which does the same as
`mcp-bundle-filesystem DIR`. This module does not read the catalog, since it must not need more libraries than the
server.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from shared.program.line_parser import LineParser

from ..program_name import program_name

SERVERS = Path(__file__).resolve().parents[2]


def main(argv: Sequence[str]) -> int:
    """Run the server, which exits with its own exit code."""
    if argv[:1] and argv[0].startswith("-") and "--join" in argv:
        program = import_module("...gateway.program", __package__)
        code: int = program.run_gateway(f"{program_name()} run", argv, is_command=True)
        return code
    names = sorted(path.parent.name for path in SERVERS.glob("*/__main__.py"))
    usage = "%(prog)s NAME [ARGUMENT ...]\n       %(prog)s --join [OPTION ...] [NAME ...]"
    what = "Start one server, over stdio by default, or several joined into one; see --join --help."
    parser = LineParser(f"{program_name()} run", usage, what)
    parser.add_argument("name", metavar="NAME", choices=names, help=f"{', '.join(names)}; see NAME --help")
    name = parser.parse_args(argv[:1]).name
    sys.argv = [f"mcp-bundle-{name}", *argv[1:]]
    import_module(f"...{name}.__main__", __package__).main()
    return 0
