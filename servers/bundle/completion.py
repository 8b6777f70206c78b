"""Completion by the shell: of commands, servers, tools, arguments and URIs.

    eval "$(register-python-argcomplete mcp-server-bundle)"

The shell runs the program with the line in its environment, and argcomplete answers. What a server has is asked of
the server, which is started for that; it has 2 seconds, and where it fails nothing is completed, without a word.
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
from .terminal.endings import Misuse
from .terminal.parameters import as_text, parameters_of
from .terminal.showing import records_of
from .terminal.targets import Asked, find_target, names_of

SECONDS = 2.0
"""How long a server may take; who has pressed the key is waiting."""
_WITHOUT_NAMES = ("list", "demo")

Asking = Callable[[Client], Awaitable[Iterable[str]]]


def complete(program: str, commands: Sequence[str]) -> None:
    """Answers the shell, and ends the program."""
    # What is being typed is the last of the words, also where it is empty yet.
    words = f"{os.environ['COMP_LINE'][: int(os.environ['COMP_POINT'])]}_".split()
    command = next((word for word in words[:-1] if word in commands), None)
    if command is None:
        parser = ArgumentParser(program, add_help=False)
        parser.add_argument("command", choices=commands)
    else:
        # The words that matter begin with the command, where the name of a program would stand.
        os.environ["_ARGCOMPLETE"] = str(words.index(command) + 1)
        if command in _PARSERS:
            parser = _PARSERS[command]()
        else:
            # Of a command that talks to no server, the names of servers are completed.
            parser = ArgumentParser(add_help=False)
            if command not in _WITHOUT_NAMES:
                parser.add_argument("names", nargs="*")
            parser.set_defaults(catalog=CATALOG)
    for action in vars(parser)["_actions"]:
        if action.dest in _COMPLETERS and not action.option_strings:
            action.completer = _COMPLETERS[action.dest]
    argcomplete.autocomplete(parser, always_complete_options=False)


def _servers(parsed_args: Namespace, **_: Any) -> list[str]:
    """The names of the catalog, and what the clients on this machine have."""
    found = _names_of_catalog(parsed_args)
    try:
        machine = this_machine()
    except ValueError:
        return found
    for client in CLIENTS:
        try:
            found += [f"{client.name}:{name}" for name in names_of(client, machine, Path.cwd())]
        except ValueError:
            continue
    return found


def _names_of_catalog(parsed_args: Namespace, **_: Any) -> list[str]:
    try:
        return [entry.name for entry in load_catalog(parsed_args.catalog).servers]
    except ValueError:
        return []


def _listed(ask: Callable[[Client], Awaitable[Any]], key: str) -> Callable[..., list[str]]:
    """Gives what stands under `key` in a list of the server's."""

    async def names(client: Client) -> list[str]:
        return [one[key] for one in records_of(await ask(client)) if isinstance(one.get(key), str)]

    return lambda parsed_args, **_: _asked(parsed_args, names)


_uris = _listed(lambda client: client.plain.list_resources(), "uri")


def _pairs(parsed_args: Namespace, prefix: str, **_: Any) -> list[str]:
    """The names of arguments, and of one of them the values where the schema names them."""

    async def of_tool(client: Client) -> list[str]:
        tools = records_of(await client.plain.list_tools())
        schema = next((one.get("inputSchema") for one in tools if one.get("name") == parsed_args.tool), None)
        known = parameters_of(schema)
        if (chosen := known.get(prefix.partition("=")[0])) is None or "=" not in prefix:
            return [f"{name}=" for name in known]
        values = [*chosen.choices, *((True, False) if "boolean" in chosen.types else ())]
        return [f"{chosen.name}={as_text(value)}" for value in values]

    async def of_prompt(client: Client) -> list[str]:
        prompts = records_of(await client.plain.list_prompts())
        takes = next((one.get("arguments") for one in prompts if one.get("name") == parsed_args.prompt), None)
        name, equals, value = prefix.partition("=")
        if not equals:
            return [f"{one.get('name')}=" for one in records_of(takes)]
        found = await client.complete(PromptReference(name=parsed_args.prompt), name, value)
        return [f"{name}={one}" for one in found.values]

    return _asked(parsed_args, of_tool if "tool" in parsed_args else of_prompt)


_COMPLETERS: dict[str, Callable[..., list[str]]] = {
    "names": _names_of_catalog,
    "server": _servers,
    "tool": _listed(lambda client: client.plain.list_tools(), "name"),
    "prompt": _listed(lambda client: client.plain.list_prompts(), "name"),
    "uri": _uris,
    "uris": _uris,
    "pairs": _pairs,
}
"""By what the arguments of the commands are called."""
_PARSERS: dict[str, Callable[[], ArgumentParser]] = {
    "call": call_parser,
    "read": read_parser,
    "watch": watch_parser,
    "prompt": prompt_parser,
    "inspect": inspect_parser,
}


def _asked(parsed_args: Namespace, asking: Asking) -> list[str]:
    """What a server says that is not to take longer than somebody waits."""
    try:
        line = shlex.split(os.environ.get("COMP_LINE", ""))
    except ValueError:  # a quote that is still open
        line = []
    words = tuple(line[line.index("--") + 1 :]) if "--" in line else ()

    async def ask() -> list[str]:
        target = find_target(Asked(parsed_args.server, words, parsed_args.catalog))
        how: dict[str, Any] = {} if target.url else {"env": target.env, "cwd": target.directory}
        if target.headers:
            how["headers"] = target.headers
        with anyio.move_on_after(SECONDS):
            options = ClientOptions(probe_seconds=SECONDS / 2)
            async with connect(target.url or target.command, options, **how) as client:
                return list(await asking(client))
        return []

    try:
        return [one for one in anyio.run(ask) if one.isprintable()]
    except (Misuse, McpError, OSError, ValueError, ModuleNotFoundError):
        return []
