"""Shell completion: of commands, servers, tools, arguments and URIs.

    eval "$(register-python-argcomplete mcp-server-bundle)"

The shell runs the program with the command line in its environment, and argcomplete prints the completions. Names of
tools, prompts and resources come from the server, which is started for that. If it does not answer within two
seconds, or fails, nothing is completed, without a message.
"""

import os
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import anyio
import argcomplete

from servers.catalog import CATALOG, load_catalog
from servers.common.machine import this_machine
from shared.client.client import Client
from shared.client.connect import connect
from shared.client.options import ClientOptions
from shared.errors import McpError
from shared.protocol.types.prompts import PromptReference

from .commands.client.call import call_parser
from .commands.client.inspect import inspect_parser
from .commands.client.prompt import prompt_parser
from .commands.client.read import read_parser
from .commands.client.watch import watch_parser
from .hosts.clients import CLIENTS
from .terminal.display import records_of
from .terminal.exit_codes import Misuse
from .terminal.parameters import as_text, parameters_of
from .terminal.targets import ServerChoice, find_target, names_of

SECONDS = 2.0
"""Seconds that a server has to answer, since the user is waiting."""
_WITHOUT_NAMES = ("list", "demo")

CandidateSource = Callable[[Client], Awaitable[Iterable[str]]]


def complete(program: str, commands: Sequence[str]) -> None:
    """Print the completions for the shell, and exit."""
    # The last word is the one being typed, even if it is still empty.
    words = f"{os.environ['COMP_LINE'][: int(os.environ['COMP_POINT'])]}_".split()
    command = next((word for word in words[:-1] if word in commands), None)
    if command is None:
        parser = ArgumentParser(program, add_help=False)
        parser.add_argument("command", choices=commands)
    else:
        # argcomplete shall treat the command as the program, and ignore the words before it.
        os.environ["_ARGCOMPLETE"] = str(words.index(command) + 1)
        if command in _PARSERS:
            parser = _PARSERS[command]()
        else:
            # For a command that connects to no server, only server names are completed.
            parser = ArgumentParser(add_help=False)
            if command not in _WITHOUT_NAMES:
                parser.add_argument("names", nargs="*")
            parser.set_defaults(catalog=CATALOG)
    for action in vars(parser)["_actions"]:
        if action.dest in _COMPLETERS and not action.option_strings:
            action.completer = _COMPLETERS[action.dest]
    argcomplete.autocomplete(parser, always_complete_options=False)


def _complete_servers(parsed_args: Namespace, **_: Any) -> list[str]:
    """Return the names in the catalog, and the names in the configurations of clients on this machine."""
    names = _complete_names(parsed_args)
    try:
        machine = this_machine()
    except ValueError:
        return names
    for client in CLIENTS:
        try:
            names += [f"{client.name}:{name}" for name in names_of(client, machine, Path.cwd())]
        except ValueError:
            continue
    return names


def _complete_names(parsed_args: Namespace, **_: Any) -> list[str]:
    try:
        return [entry.name for entry in load_catalog(parsed_args.catalog).servers]
    except ValueError:
        return []


def _complete_from_list(ask: Callable[[Client], Awaitable[Any]], key: str) -> Callable[..., list[str]]:
    """Return a completer for the values of `key` in the list that `ask` requests from the server."""

    async def names(client: Client) -> list[str]:
        return [record[key] for record in records_of(await ask(client)) if isinstance(record.get(key), str)]

    return lambda parsed_args, **_: _request_candidates(parsed_args, names)


_uris = _complete_from_list(lambda client: client.raw.list_resources(), "uri")


def _complete_pairs(parsed_args: Namespace, prefix: str, **_: Any) -> list[str]:
    """Return completions of KEY=VALUE: the names of arguments, or, after the `=`, the possible values."""

    async def complete_for_tool(client: Client) -> list[str]:
        tools = records_of(await client.raw.list_tools())
        schema = next((tool.get("inputSchema") for tool in tools if tool.get("name") == parsed_args.tool), None)
        parameters = parameters_of(schema)
        if (chosen := parameters.get(prefix.partition("=")[0])) is None or "=" not in prefix:
            return [f"{name}=" for name in parameters]
        values = [*chosen.choices, *((True, False) if "boolean" in chosen.types else ())]
        return [f"{chosen.name}={as_text(value)}" for value in values]

    async def complete_for_prompt(client: Client) -> list[str]:
        prompts = records_of(await client.raw.list_prompts())
        declared = next((item.get("arguments") for item in prompts if item.get("name") == parsed_args.prompt), None)
        name, equals, value = prefix.partition("=")
        if not equals:
            return [f"{item.get('name')}=" for item in records_of(declared)]
        completion = await client.complete(PromptReference(name=parsed_args.prompt), name, value)
        return [f"{name}={item}" for item in completion.values]

    return _request_candidates(parsed_args, complete_for_tool if "tool" in parsed_args else complete_for_prompt)


_COMPLETERS: dict[str, Callable[..., list[str]]] = {
    "names": _complete_names,
    "server": _complete_servers,
    "tool": _complete_from_list(lambda client: client.raw.list_tools(), "name"),
    "prompt": _complete_from_list(lambda client: client.raw.list_prompts(), "name"),
    "uri": _uris,
    "uris": _uris,
    "pairs": _complete_pairs,
}
"""The completers, by the name of an argument of the commands."""
_PARSERS: dict[str, Callable[[], ArgumentParser]] = {
    "call": call_parser,
    "read": read_parser,
    "watch": watch_parser,
    "prompt": prompt_parser,
    "inspect": inspect_parser,
}


def _request_candidates(parsed_args: Namespace, source: CandidateSource) -> list[str]:
    """Return the candidates that `source` requests from the server; empty if the server fails or is too slow."""
    try:
        line = shlex.split(os.environ.get("COMP_LINE", ""))
    except ValueError:  # an unclosed quote
        line = []
    words = tuple(line[line.index("--") + 1 :]) if "--" in line else ()

    async def ask() -> list[str]:
        target = find_target(ServerChoice(parsed_args.server, words, parsed_args.catalog))
        connection_options: dict[str, Any] = {} if target.url else {"env": target.env, "cwd": target.directory}
        if target.headers:
            connection_options["headers"] = target.headers
        with anyio.move_on_after(SECONDS):
            options = ClientOptions(probe_seconds=SECONDS / 2)
            async with connect(target.url or target.command, options, **connection_options) as client:
                return list(await source(client))
        return []

    try:
        return [candidate for candidate in anyio.run(ask) if candidate.isprintable()]
    except (Misuse, McpError, OSError, ValueError, ModuleNotFoundError):
        return []
