"""Checks of a configuration of `serve`, and of the third-party servers in it.

Each third-party server is started or connected to once, and its tools are listed. So the findings show which of them
are withheld because of their pins, and which rules of the operator match no tool.
"""

import logging
import os
from collections import deque
from collections.abc import Collection, Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio

from servers.catalog import Catalog
from servers.gateway.joined.directory import server_of
from servers.gateway.proxy.pins import ALL_CAPABILITIES, Comparison, compare, list_tools
from servers.gateway.rules.pins import Pins
from servers.gateway.serve.choice import choose_servers
from servers.gateway.serve.configuration import OPTIONS, Configuration, read_configuration
from servers.gateway.serve.selection import JoinOptions
from servers.gateway.serve.third_party import ThirdPartyServer, is_third_party, pins_path
from shared.errors import McpError
from shared.program.process import Options
from shared.program.settings.options import read_options
from shared.text import escape, format_count, join_lines

from ..log_records import take_records
from ..program_name import program_name
from .examination import SECONDS, Step, run_steps
from .findings import Finding, fault, fine, warning
from .installation import CheckedInstallation, check_installation
from .trials import mask, split_secrets

_MAX_NAMED_TOOLS = 5
"""Maximum number of tools that are named in one finding, or get a finding each."""
_lines: ContextVar[deque[str] | None] = ContextVar("lines", default=None)


class ServeConfiguration(NamedTuple):
    """The path of a configuration of `serve`, and what is needed for its checks."""

    path: Path
    catalog: Catalog
    installation: CheckedInstallation
    names: Sequence[str] = ()
    """The names of the servers to check; all in the configuration if empty."""
    time_limit: float = SECONDS
    """The time limit for a server to start and list its tools."""


async def examine_served(served: ServeConfiguration) -> list[Finding]:
    """Return the findings about the configuration, and about each server in it."""
    path = served.path
    try:
        configuration = read_configuration(path)
        existing = list(configuration.servers or ())
        for name in served.names:
            if name not in existing:
                raise ValueError(f"there is no server {name!r} in it; available: {', '.join(existing)}")
        names = list(dict.fromkeys(served.names)) or existing
    except ValueError as error:
        fix = f"correct it in {path}" if path.exists() else "pass the path of an existing file to --config"
        return [fault(str(path), _reason(error, path), fix)]
    ours = [name for name in names if not is_third_party((configuration.servers or {}).get(name, {}))]
    entries = [entry for entry in served.catalog.servers if entry.name in ours]
    findings = list(check_installation(served.installation, entries, ours))
    try:
        read_options(Options, {"transport": "http"}, os.environ, "MCP", configuration.options)
        read_options(JoinOptions, {}, file=configuration.join_options).members(existing, existing)
    except ValueError as error:
        findings.append(fault(str(path), _reason(error, path), f"correct it in {path}"))
    else:
        findings.append(fine(str(path), f"can be read, and names {format_count(len(existing), 'server')}"))
    exposed = configuration.exposed(configuration.options, OPTIONS)
    if exposed is not None:
        findings.append(_exposure_warning(str(path), exposed, path))
    steps: list[Step] = [partial(_check_server, served, configuration, name) for name in names]
    with take_records("shared.transports.process", _LastLine()):
        return findings + await run_steps(steps)


def _reason(error: Exception, path: Path) -> str:
    return join_lines(str(error)).removeprefix(f"{path}: ")


def _exposure_warning(where: str, secret: str, path: Path) -> Finding:
    what = f"other users on this machine can read a secret: {secret.removeprefix(f'{path}: ')}"
    fix = "chmod 600 the file that contains it, and replace the secret if others use this machine"
    return warning(where, what, fix)


async def _check_server(served: ServeConfiguration, configuration: Configuration, name: str) -> list[Finding]:
    """Return the findings about one server of the configuration."""
    path, where = served.path, f"{served.path}, {name!r}"
    alone = configuration._replace(servers={name: (configuration.servers or {})[name]})
    try:
        chosen = choose_servers([name], served.catalog, alone)
        third_party = alone.third_party_servers().get(name)
        pins = Pins(pins_path(path, name)) if third_party is not None and third_party.settings.pin else None
    except ValueError as error:
        return [fault(where, _reason(error, path), f"correct it in {path}")]
    findings = [_exposure_warning(where, server.exposed, path) for server in chosen if server.exposed is not None]
    if third_party is None:
        return [*findings, fine(where, "its settings are valid")]
    others = [server for server in configuration.servers or () if server != name]
    return findings + await _check_third_party(served, third_party, pins, where, others)


async def _check_third_party(
    served: ServeConfiguration, third_party: ThirdPartyServer, pins: Pins | None, where: str, others: Collection[str]
) -> list[Finding]:
    """Connect to a third-party server and check its tools; return the findings. `others` are the names of all other
    servers."""
    lines = deque[str](maxlen=1)
    _lines.set(lines)
    try:
        with anyio.fail_after(served.time_limit):
            async with third_party.connect(ALL_CAPABILITIES) as client:
                tools, server = await list_tools(client), client.server
    except (OSError, McpError, ValueError) as error:
        secrets = split_secrets(third_party.values())
        if isinstance(error, TimeoutError):
            reason = f"it does not answer within {served.time_limit:g} seconds"
        elif isinstance(error, McpError | ConnectionError | ValueError):
            reason = f"it does not answer as an MCP server does: {join_lines(str(error))}"
        else:
            reason = f"it can't be started: {getattr(error, 'strerror', None) or join_lines(str(error))}"
        what, command = mask("; its last output: ".join([reason, *lines]), secrets), third_party.settings.command
        fix = f"check that the server is running, and that its url and token in {served.path} are correct"
        if command is not None:
            fix = f"install {escape(command[0])}, or correct its command in {served.path}"
        return [fault(where, what, fix)]
    how = "it answers" if third_party.settings.command is None else "it starts"
    name, version = (escape(str(server.info.get(key, "unknown")))[:100] for key in ("name", "version"))
    what = f"{how}, is {name} {version}, speaks {server.version}, and has {format_count(len(tools), 'tool')}"
    findings = [fine(where, what)]
    names = [tool["name"] for tool in tools]
    for rule, pattern in third_party.rules.find_unused(names):
        what = f"tools.{rule} has {pattern!r}, which matches none of its tools"
        findings.append(warning(where, what, f"correct it in {served.path}"))
    for name in filter(third_party.rules.is_replaced, names):
        what = f"its tool {escape(name)[:100]} is withheld: another tool is renamed to that"
        findings.append(warning(where, what, f"rename one of the two tools to another name in {served.path}"))
    # In the list of joined servers, a tool whose name begins with the prefix of another server would seem to belong
    # to that.
    for name in [name for name in names if server_of(name) in others][:_MAX_NAMED_TOOLS]:
        what = f"its tool {escape(name)[:100]} looks like one of the server {server_of(name)!r}"
        fix = f"check whether you trust it, or add it to its tools.deny in {served.path}"
        findings.append(warning(where, what, fix))
    if pins is not None:
        see = f"{program_name()} pin {third_party.name} --config '{served.path}'"
        findings.append(_pin_finding(pins, compare(pins, tools, third_party.rules), see, where))
    return findings


def _pin_finding(pins: Pins, comparison: Comparison, see: str, where: str) -> Finding:
    """Return the finding about the pins of a server. `see` is the command that shows the changes."""
    if pins.is_new:
        return fine(
            where, "its tools are not pinned yet: they will be pinned when a client first connects to `serve`"
        )
    if not comparison.hidden:
        return fine(where, f"its tools match their pins: {len(comparison.matching)}")
    names = ", ".join(escape(name)[:100] for name in comparison.hidden[:_MAX_NAMED_TOOLS])
    more = (
        f" and {len(comparison.hidden) - _MAX_NAMED_TOOLS} more" if len(comparison.hidden) > _MAX_NAMED_TOOLS else ""
    )
    what = f"withheld from clients, since their definitions do not match the pins: {names}{more}"
    return warning(where, what, f"to see what has changed, run {see}; --accept accepts the changes")


# The servers' stderr output


class _LastLine(logging.Handler):
    """Stores the last line that the server of the current task wrote to stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        lines = _lines.get()
        if lines is not None and record.name == "shared.transports.process":
            lines.append(record.getMessage().partition(": ")[2])
