"""`python -m servers prompt SERVER NAME key=value ...`: print a prompt with its arguments filled in."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.client.client import Client
from shared.errors import PeerError
from shared.text import nearest

from ...terminal.display import Piece, pieces_of, records_of, show, write_json
from ...terminal.elicitation import interactive_options
from ...terminal.exit_codes import DONE, Misuse
from ...terminal.parameters import texts_by_key, unknown
from ...terminal.parser import SessionParser


def main(argv: Sequence[str]) -> int:
    """Print the messages of the prompt; return the exit code."""
    options, session = prompt_parser().read(argv)

    async def work(client: Client) -> int:
        prompts = await session.wait_for(client.raw.list_prompts()) if client.server.can("prompts") else []
        offered = {str(prompt.get("name")): prompt for prompt in records_of(prompts)}
        arguments = _arguments(offered, options.prompt, options.pairs)
        params = {"name": options.prompt, "arguments": arguments}
        try:
            result = await client.request("prompts/get", params, timeout=session.time_limit)
        except PeerError as error:
            if options.prompt in offered or not offered:
                raise
            raise Misuse(f"{unknown('prompt', options.prompt, offered)}; the server says: {error}") from None
        if options.json:
            write_json(result)
        else:
            messages = result.get("messages")
            records = records_of(messages)
            pieces: list[Piece] = []
            for message in records:
                if len(records) > 1:
                    pieces.append(Piece(f"{message.get('role')}:"))
                pieces += pieces_of(message.get("content"))
            show(pieces, advice="--json prints it")
        return DONE

    return session.run(work, interactive_options(session))


def prompt_parser() -> SessionParser:
    """Return the parser of the command."""
    parser = SessionParser("prompt", " NAME [KEY=VALUE ...]", "Show a prompt with its arguments filled in.")
    parser.add_argument("prompt", metavar="NAME", help="prompt to show")
    parser.add_argument("pairs", nargs="*", default=[], metavar="KEY=VALUE", help="an argument of the prompt")
    parser.add_options()
    return parser


def _arguments(offered: Mapping[str, dict[str, Any]], name: str, pairs: Sequence[str]) -> dict[str, str]:
    """Return the arguments in the KEY=VALUE words `pairs` for the prompt called `name`. `offered` are the prompts of
    the server. Raises Misuse for an unknown or missing argument, and for a name that is probably misspelled."""
    # A prompt that is not listed, and whose name resembles no other, is requested nevertheless, since it may exist.
    is_listed = name in offered
    if not is_listed and nearest(name, offered) is not None:
        raise Misuse(unknown("prompt", name, offered))
    declared = {
        str(argument.get("name")): argument for argument in records_of(offered.get(name, {}).get("arguments"))
    }
    texts = texts_by_key(pairs)
    for key, values in texts.items():
        if is_listed and key not in declared:
            raise Misuse(unknown("argument", key, declared))
        if len(values) > 1:
            raise Misuse(f"{key} takes one value, but got {len(values)}")
    missing = [key for key, argument in declared.items() if argument.get("required") is True and key not in texts]
    if missing:
        raise Misuse(f"{name} needs {' and '.join(f'{key}=TEXT' for key in missing)}")
    return {key: values[0] for key, values in texts.items()}
