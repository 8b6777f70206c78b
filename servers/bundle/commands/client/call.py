"""`python -m servers call SERVER TOOL key=value ...`: call one tool from a terminal."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from shared.client.client import Client
from shared.errors import InvalidParams, McpError, MethodNotFound, PeerError
from shared.program.messages import exit_with_error
from shared.text import format_count

from ...terminal.display import (
    Piece,
    check_output_path,
    pieces_of,
    pieces_of_contents,
    records_of,
    save,
    show,
    write_json,
)
from ...terminal.elicitation import interactive_options
from ...terminal.exit_codes import DONE, REFUSED, Misuse
from ...terminal.parameters import as_text, from_json, parameters_of, read_arguments, unknown
from ...terminal.parser import SessionParser
from ...terminal.progress import Bar, Status
from ...terminal.session import Session

_MAX_LINKS = 100
"""Maximum number of linked resources that are read for one result."""


def main(argv: Sequence[str]) -> int:
    """Call the tool and show its result; return the exit code."""
    parser = call_parser()
    options, session = parser.read(argv)
    try:
        check_output_path(options.out)
        if (options.task is None) == (options.tool is None):
            raise Misuse("specify a TOOL, or --task ID instead")
        if options.task is not None and (options.detach or options.whole is not None):
            raise Misuse("--task continues an earlier call: it takes neither arguments nor --detach")
        if (options.detach or options.task is not None) and "://" not in options.server:
            raise Misuse("a server started for a single command stops with it, and so do its tasks: specify a URL")
        whole = _read_whole(options.whole)
    except Misuse as error:
        exit_with_error(parser.prog, str(error))
    bar = Bar()
    status = Status(session.say, bar)

    async def work(client: Client) -> int:
        if options.task is not None:
            with bar:
                try:
                    task = client.resume_tool({"taskId": options.task}, timeout=session.time_limit)
                    result = await task.plain_result(status.take)
                except anyio.get_cancelled_exc_class():
                    session.say("the task continues")
                    raise
            return await _output(client, result, options, session)
        listed = await session.wait_for(client.raw.list_tools()) if client.server.can("tools") else []
        tools = {str(tool.get("name")): tool for tool in records_of(listed)}
        arguments = {**(whole or {}), **_arguments(options, tools, is_whole=whole is not None)}
        if options.detach:
            with _suggest_tool(options.tool, tools):
                started = await client.start_tool(options.tool, arguments, timeout=session.time_limit)
            if started.id is None:
                session.say("the server did not run the call as a task, and has already answered")
                return await _output(client, await started.plain_result(), options, session)
            if options.json:
                write_json(started.saved())
            else:
                show([Piece(started.id)])
            session.say("the task continues; to wait for it, use --task with this id instead of the tool")
            return DONE
        params = {"name": options.tool, "arguments": arguments}
        with bar, _suggest_tool(options.tool, tools):
            result = await client.request(
                "tools/call", params, timeout=session.time_limit, on_progress=bar.report, on_task=status.take
            )
        return await _output(client, result, options, session)

    return session.run(work, interactive_options(session, bar.pause))


def call_parser() -> SessionParser:
    """Return the parser of the command."""
    parser = SessionParser(
        "call",
        " TOOL [KEY=VALUE ...]",
        "Call a server's tool. Each VALUE is converted as the tool's schema requires.",
    )
    parser.add_argument("tool", nargs="?", metavar="TOOL", help="tool to call")
    text = "argument; repeat the KEY or pass JSON for a list, and pass JSON for an object"
    parser.add_argument("pairs", nargs="*", default=[], metavar="KEY=VALUE", help=text)
    text = "all arguments as one JSON object; - reads it from standard input"
    parser.add_argument("--arguments", dest="whole", metavar="JSON", help=text)
    text = "file for images, other binary content and linked resources"
    parser.add_argument("--out", type=Path, metavar="FILE", help=text)
    text = "run the call as a task on a server at a URL, print its id, and do not wait for it"
    parser.add_argument("--detach", action="store_true", help=text)
    text = "instead of TOOL: wait for a task, and show its result"
    parser.add_argument("--task", metavar="ID", help=text)
    parser.add_options()
    return parser


def _read_whole(text: str | None) -> dict[str, Any] | None:
    """Return the object in `text`, the value of `--arguments`, or in stdin; None without the option. Raises Misuse if
    it is not one JSON object."""
    if text is None:
        return None
    try:
        value = from_json(sys.stdin.read() if text == "-" else text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Misuse("--arguments takes one JSON object")
    return value


def _arguments(options: Namespace, tools: Mapping[str, Any], *, is_whole: bool) -> dict[str, Any]:
    """Return the arguments in the KEY=VALUE words, converted to the types in the tool's schema. Raises Misuse for an
    unknown argument and, unless `is_whole` (--arguments was used), for a missing one."""
    # A tool that the server does not list is called nevertheless, since it may exist.
    schema = tools.get(options.tool, {}).get("inputSchema")
    arguments = read_arguments(options.pairs, schema)
    missing = [param for param in parameters_of(schema).values() if param.required and param.name not in arguments]
    if missing and not is_whole:
        raise Misuse(f"{options.tool} needs {' and '.join(f'{param.name}={param.kind}' for param in missing)}")
    return arguments


@contextmanager
def _suggest_tool(name: str, tools: Mapping[str, Any]) -> Iterator[None]:
    """If the server refuses a call in the block of a tool that it does not list, raise Misuse with a similar name."""
    try:
        yield
    except PeerError as error:
        if name in tools or error.code not in (InvalidParams.code, MethodNotFound.code):
            raise
        # The error of a gateway also names its unavailable servers, one of which may have the tool.
        further = [part for part in str(error).split("; ")[1:] if part.startswith("not available at the moment")]
        raise Misuse("; ".join([unknown("tool", name, tools), *further])) from None


async def _output(client: Client, result: dict[str, Any], options: Namespace, session: Session) -> int:
    """Print a result, save binary content and linked resources if `--out` is used, and return the exit code. Raises
    Misuse if they can't be saved, but only after the rest was printed, since repeating the call may not be
    possible."""
    links = [block for block in records_of(result.get("content")) if block.get("type") == "resource_link"]
    if options.out is None:
        if links and "://" not in options.server:
            session.say("the links point to this server and work only while it runs; --out FILE saves their contents")
        return _show(result, pieces_of(result.get("content")), options)
    linked = await _read_links(client, links, session)
    pieces = pieces_of(result.get("content"))
    saved = [*(piece for piece in pieces if piece.data is not None), *linked]
    try:
        if saved:
            save(saved, options.out, session.say)
        elif not links:
            session.say("nothing to save: the answer is text")
    finally:
        exit_code = _show(result, [piece for piece in pieces if piece.data is None], options)
    return exit_code


async def _read_links(client: Client, links: Sequence[dict[str, Any]], session: Session) -> list[Piece]:
    """Return the contents of the linked resources, and report those that can't be read."""
    linked: list[Piece] = []
    uris = list(dict.fromkeys(as_text(link.get("uri")) for link in links))
    for uri in uris[:_MAX_LINKS]:
        try:
            # Read it now, while the server that this command has started is running.
            answer = await client.request("resources/read", {"uri": uri}, timeout=session.time_limit)
        except (OSError, McpError) as error:
            session.say(f"{uri}: {str(error) or 'no answer in time'}")
        else:
            linked += pieces_of_contents(answer.get("contents"))
    if len(uris) > _MAX_LINKS:
        session.say(
            f"{format_count(len(uris) - _MAX_LINKS, 'more link')} not saved: at most {_MAX_LINKS} of one answer are"
        )
    return linked


def _show(result: dict[str, Any], pieces: Sequence[Piece], options: Namespace) -> int:
    has_failed = result.get("isError") is True
    if options.json:
        write_json(result)
    elif not result.get("content") and result.get("structuredContent") is not None:
        show([Piece(json.dumps(result["structuredContent"], indent=2, ensure_ascii=False))])
    else:
        show(pieces, as_error=has_failed)
    return REFUSED if has_failed else DONE
