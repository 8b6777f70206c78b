"""`python -m servers prompt SERVER NAME key=value ...`: a prompt, filled in."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.client.client import Client
from shared.errors import PeerError
from shared.text import nearest

from ...terminal.endings import DONE, Misuse
from ...terminal.parameters import texts_of, unknown
from ...terminal.parser import TalkParser
from ...terminal.questions import asking
from ...terminal.showing import Piece, pieces_of, records_of, show, write_json


def main(argv: Sequence[str]) -> int:
    """Shows the messages of the prompt; the exit code."""
    given, talk = prompt_parser().read(argv)

    async def work(client: Client) -> int:
        prompts = await talk.bounded(client.plain.list_prompts()) if client.server.can("prompts") else []
        offered = {str(prompt.get("name")): prompt for prompt in records_of(prompts)}
        arguments = _arguments(offered, given.prompt, given.pairs)
        params = {"name": given.prompt, "arguments": arguments}
        try:
            result = await client.request("prompts/get", params, timeout=talk.seconds)
        except PeerError as error:
            if given.prompt in offered or not offered:
                raise
            raise Misuse(f"{unknown('prompt', given.prompt, offered)}; the server says: {error}") from None
        if given.json:
            write_json(result)
        else:
            messages = result.get("messages")
            known = records_of(messages)
            pieces: list[Piece] = []
            for one in known:
                if len(known) > 1:
                    pieces.append(Piece(f"{one.get('role')}:"))
                pieces += pieces_of(one.get("content"))
            show(pieces)
        return DONE

    return talk.run(work, asking(talk))


def prompt_parser() -> TalkParser:
    """The parser of the command."""
    parser = TalkParser("prompt", " NAME [KEY=VALUE ...]", "Show a prompt of a server, filled in.")
    parser.add_argument("prompt", metavar="NAME", help="which prompt")
    parser.add_argument("pairs", nargs="*", default=[], metavar="KEY=VALUE", help="an argument of the prompt")
    parser.add_options()
    return parser


def _arguments(known: Mapping[str, dict[str, Any]], name: str, words: Sequence[str]) -> dict[str, str]:
    """What the words give; each argument of a prompt is a text. Raises Misuse for what the prompt does not take, and
    for what it lacks.

    A prompt that is not listed is asked for all the same, since the server alone knows why it is not on offer.
    """
    is_listed = name in known
    if not is_listed and nearest(name, known) is not None:
        raise Misuse(unknown("prompt", name, known))
    takes = {str(one.get("name")): one for one in records_of(known.get(name, {}).get("arguments"))}
    texts = texts_of(words)
    for key, values in texts.items():
        if is_listed and key not in takes:
            raise Misuse(unknown("argument", key, takes))
        if len(values) > 1:
            raise Misuse(f"{key} takes one value, and was given {len(values)}")
    missing = [key for key, one in takes.items() if one.get("required") is True and key not in texts]
    if missing:
        raise Misuse(f"{name} needs {' and '.join(f'{key}=TEXT' for key in missing)}")
    return {key: values[0] for key, values in texts.items()}
