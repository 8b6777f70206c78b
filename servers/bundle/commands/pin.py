"""`python -m servers pin NAME --config FILE`: print the changed tools of a third-party server, and accept them."""

import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from servers.gateway.proxy.pins import ALL_CAPABILITIES, accept, compare, differences, list_tools, summary
from servers.gateway.rules.pins import Pins, definition_of
from servers.gateway.serve.configuration import read_configuration
from servers.gateway.serve.third_party import ThirdPartyServer, pins_path
from shared.client.client import Client
from shared.program.installation import shell_line
from shared.program.messages import exit_with_error
from shared.text import escape, format_count, nearest, plain

from ..program_name import program_name
from ..terminal.command_parser import CommandParser
from ..terminal.exit_codes import DONE, REFUSED, Misuse
from ..terminal.session import Connector, Session
from ..terminal.targets import ServerChoice

SECONDS = 60.0
"""Seconds that a server has to start, and for each answer."""

ToolDefinitions = Sequence[dict[str, Any]]


def main(argv: Sequence[str]) -> int:
    """Print the changes, and accept them if requested; return the exit code: 1 if a tool is still withheld."""
    parser = CommandParser(
        "pin",
        "Compare the tools of a third-party server with their pins, and show the changes. "
        "Tools that changed or are new are hidden from clients until they are accepted. Exit codes: 0 all match "
        "their pins, 1 some are hidden, 2 incorrect usage, 3 no connection or no answer.",
    )
    parser.add_argument("name", metavar="NAME", help="server in the configuration")
    text = "configuration of `serve`; the pins are next to it, in NAME.pins.json"
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help=text)
    text = "pin the current definitions of these tools (default: all)"
    parser.add_argument("--accept", nargs="*", metavar="TOOL", help=text)
    args = parser.parse_args(argv)
    try:
        configuration = read_configuration(args.config)
        servers = configuration.third_party_servers()
        if args.name not in servers and args.name in (configuration.servers or {}):
            raise ValueError(
                f"{args.config}: servers.{args.name}: this is one of the bundle's own servers, which need no pins"
            )
        if args.name not in servers:
            available = f"; available: {', '.join(servers)}" if servers else ""
            missing = f"no third-party server named {args.name!r} (with a `command` or a `url`) is configured"
            raise ValueError(f"{args.config}: {missing}{available}")
        third_party, pins = servers[args.name], Pins(pins_path(args.config, args.name))
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    session = Session(parser.prog, ServerChoice(third_party.name), SECONDS)
    if not third_party.settings.pin:
        session.say(f"{third_party.name} has no `pin: true` in {args.config}: its pins have no effect")

    async def work(client: Client) -> int:
        return _report(args, third_party, pins, await session.wait_for(list_tools(client)))

    # `has_token`: the credentials are in the configuration, so a refusal must not suggest options for them.
    return session.run_on(Connector(third_party.name, third_party.connect, has_token=True), work, ALL_CAPABILITIES)


def _report(args: Namespace, third_party: ThirdPartyServer, pins: Pins, tools: ToolDefinitions) -> int:
    """Print the comparison, accept tools if requested; return the exit code. Raises Misuse for an unknown tool."""
    current = {tool["name"]: tool for tool in tools}
    named = list(args.accept or ())
    for name in named:
        if name not in current and name not in pins.names:
            close = nearest(name, current)
            raise Misuse(f"there is no tool {name!r}" + (f"; did you mean {escape(close)}?" if close else ""))
    was_new, comparison = pins.is_new, compare(pins, tools, third_party.rules)
    lines = [f"{third_party.name}: {format_count(len(current), 'tool')}"]
    if not pins.is_new:
        lines.append(f"matching their pins: {len(comparison.matching)}")
    for name in comparison.changed:
        changes = differences(pins.definition(name) or {}, definition_of(current[name]))
        lines += [f"changed: {escape(name)}", *(f"  {line}" for line in changes)]
    for name in comparison.new:
        lines += [f"new: {escape(name)}", *(f"  {line}" for line in summary(current[name]))]
    lines += (f"gone: {escape(name)}" for name in comparison.removed)
    _print(lines)
    if args.accept is not None:
        try:
            accept(pins, tools, named)
        except OSError as error:
            raise Misuse(f"{pins.path} can't be written: {error.strerror}") from None
        _print([f"pinned in {pins.path}: {', '.join(map(escape, named)) or 'all of them'}"])
        comparison = compare(pins, tools, third_party.rules)
    elif was_new:
        _print(["no tools are pinned yet: --accept pins them now, otherwise the first connection to `serve` does"])
    if comparison.hidden and args.accept is None:
        words = shell_line(["pin", third_party.name, "--config", str(args.config), "--accept"])
        _print([f"accept with: {program_name()} {words}"])
    return REFUSED if comparison.hidden else DONE


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{plain(line)}\n" for line in lines)
