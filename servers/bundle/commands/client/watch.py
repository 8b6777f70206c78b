"""`python -m servers watch SERVER URI...`: print the changes to resources as they happen."""

from collections.abc import Sequence
from dataclasses import replace

from shared.client.client import Client

from ...terminal.elicitation import interactive_options
from ...terminal.parser import SessionParser
from ...terminal.watch import watch


def main(argv: Sequence[str]) -> int:
    """Print a line for each change, until Ctrl+C ends it; return the exit code."""
    options, session = watch_parser().read(argv)

    async def work(client: Client) -> int:
        return await watch(client, options, session)

    return session.run(work, replace(interactive_options(session), restart=True))


def watch_parser() -> SessionParser:
    """Return the parser of the command."""
    parser = SessionParser(
        "watch",
        " [URI ...]",
        "Print a line for each change to the resources or, without a URI, to the lists of tools, prompts and "
        "resources. If the connection is lost, the server is restarted or reconnected.",
    )
    parser.add_argument("uris", nargs="*", default=[], metavar="URI", help="resource to watch")
    parser.add_argument(
        "--exec",
        metavar="COMMAND",
        help="shell command to run for each change, one at a time (on Windows without a shell); the variables "
        "WATCH_KIND and WATCH_URI describe the change",
    )
    parser.add_options()
    return parser
