"""`python -m servers read SERVER URI`: read one resource from a terminal."""

import sys
from collections.abc import Sequence
from pathlib import Path

from shared.client.client import Client
from shared.program.messages import exit_with_error

from ...terminal.display import check_output_path, pieces_of_contents, save, show, write_bytes, write_json
from ...terminal.elicitation import interactive_options
from ...terminal.exit_codes import DONE, Misuse
from ...terminal.parser import SessionParser


def main(argv: Sequence[str]) -> int:
    """Read the resource and print its content; return the exit code."""
    parser = read_parser()
    options, session = parser.read(argv)
    try:
        check_output_path(options.out)
    except Misuse as error:
        exit_with_error(parser.prog, str(error))

    async def work(client: Client) -> int:
        result = await client.request("resources/read", {"uri": options.uri}, timeout=session.time_limit)
        pieces = pieces_of_contents(result.get("contents"))
        if options.out is not None:
            save(pieces, options.out, session.say)
        if options.json:
            write_json(result)
        elif options.out is None and len(pieces) == 1 and pieces[0].data is not None and not sys.stdout.isatty():
            write_bytes(pieces[0].data)
        elif options.out is None:
            show(pieces)
        return DONE

    return session.run(work, interactive_options(session))


def read_parser() -> SessionParser:
    """Return the parser of the command."""
    parser = SessionParser(
        "read", " URI", "Read a server's resource. Binary content goes to a pipe or to --out FILE."
    )
    parser.add_argument("uri", metavar="URI", help="resource to read")
    parser.add_argument("--out", type=Path, metavar="FILE", help="file to save the content to, whatever its type")
    parser.add_options()
    return parser
