"""`python -m servers inspect SERVER`: print everything that a server offers."""

from collections.abc import Sequence

from shared.client.client import Client

from ...terminal.display import write_json
from ...terminal.exit_codes import DONE
from ...terminal.offers import find_offers, show_offers
from ...terminal.parser import SessionParser


def main(argv: Sequence[str]) -> int:
    """Print what the server offers; return the exit code."""
    options, session = inspect_parser().read(argv)

    async def work(client: Client) -> int:
        offers = await session.wait_for(find_offers(client))
        if options.json:
            write_json(offers._asdict())
        else:
            show_offers(offers)
        return DONE

    return session.run(work)


def inspect_parser() -> SessionParser:
    """Return the parser of the command."""
    parser = SessionParser(
        "inspect", "", "Show what a server offers: capabilities, tools with their arguments, resources, prompts."
    )
    parser.add_options()
    return parser
