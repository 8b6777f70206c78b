"""Runs all checks of clients' configurations. Each server in them is checked, started, and called."""

import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio

from servers.catalog import Entry
from servers.common.machine import Machine

from ..host_entries import BUNDLE
from ..hosts.clients import Client
from ..hosts.launching import local_command
from ..program_name import program_name
from .arguments import environment_from, known_variables, read_arguments
from .configurations import Launch, find_servers
from .findings import Finding, Severity, fault, fine, warning
from .installation import CheckedInstallation, check_installation
from .launches import check_launch, check_token_file, has_placeholders
from .trials import MODES, StartCommand, TriedServer, judge, split_secrets, try_server
from .urls import check_url

SECONDS = 20.0
"""Seconds that a server has to answer. Clients wait for about a minute."""
MAX_CONCURRENT_SERVERS = 4
"""Maximum number of servers that are started at the same time."""

Step = Callable[[], Awaitable[list[Finding]]]


class Examination(NamedTuple):
    """The extent of an examination."""

    machine: Machine
    installation: CheckedInstallation
    project: Path
    """The directory whose project configurations are included."""
    entries: Sequence[Entry]
    """The servers that the user has named, or all of the catalog."""
    is_named: bool = False
    """True if the user named the servers."""
    clients: Sequence[Client] = ()
    """The clients whose configurations are checked; all if empty."""
    time_limit: float = SECONDS


async def examine(examination: Examination) -> list[Finding]:
    """Run all checks and return the findings. Each server is started twice, once for each era of the protocol."""
    machine, entries = examination.machine, examination.entries
    findable = entries if examination.is_named else [*entries, BUNDLE]
    configuration = find_servers(machine, examination.project, findable, examination.clients)
    configured = {launch.entry.name for launch in configuration.launches}
    used = {entry.name for entry in entries} if examination.is_named else configured
    findings = list(check_installation(examination.installation, entries, used))
    broken = {finding.where for finding in findings if finding.severity is not Severity.OK}
    findings += [*check_shell(machine, entries), *configuration.findings]
    for client in examination.clients:
        if not any(launch.client is client for launch in configuration.launches):
            what = "its configuration has none of the servers"
            fix = f"add one: {program_name()} install NAME --client {client.name}"
            findings.append(warning(client.title, what, fix))

    async def check(launch: Launch) -> list[Finding]:
        return (await try_launch(launch, machine, examination.installation, examination.time_limit)).findings

    steps: list[Step] = [partial(check, launch) for launch in configuration.launches]
    if not configuration.launches or examination.is_named:
        # Servers that no client has configured are started if the user has named servers, or if nothing is
        # configured.
        rest = [entry for entry in entries if entry.name not in configured | broken]
        steps += [partial(_try_unconfigured, examination, entry) for entry in rest]
    return findings + await run_steps(steps)


async def run_steps(steps: Sequence[Step]) -> list[Finding]:
    """Run the steps, several at the same time, and return their findings in the order of the steps."""
    by_step: list[list[Finding]] = [[] for _ in steps]
    limit = anyio.CapacityLimiter(MAX_CONCURRENT_SERVERS)

    async def run(number: int) -> None:
        async with limit:
            by_step[number] = await steps[number]()

    async with anyio.create_task_group() as tasks:
        for number in range(len(steps)):
            tasks.start_soon(run, number)
    return [finding for findings in by_step for finding in findings]


async def _try_unconfigured(examination: Examination, entry: Entry) -> list[Finding]:
    """Start a server that no client has configured, with the least settings that it needs; return the findings."""
    with tempfile.TemporaryDirectory(prefix="mcp-doctor-") as folder:
        required = [argument for argument in entry.arguments if argument.required]
        if any(argument.name == "demo" for argument in entry.arguments):
            arguments = ["--demo"]
        elif all(argument.type == "directory" for argument in required):
            options = [[argument.option] if argument.option else [] for argument in required]
            arguments = [word for option in options for word in [*option, folder]]
        else:
            return [fine(entry.name, "not started: it needs arguments, and no client has an entry for it")]
        command = local_command(entry, arguments)
        tried = TriedServer(
            entry.name,
            entry,
            examination.installation.install_command(reinstall=True),
            f"find out why {command[0]} does not start",
        )
        env, home = environment_from(None, examination.machine), Path(examination.machine.home)
        return (await try_modes(tried, StartCommand(command, env, home), examination.time_limit)).findings


def check_shell(machine: Machine, entries: Sequence[Entry]) -> Iterator[Finding]:
    """Report each variable of the shell that affects a server, and check the token file in `MCP_TOKEN_FILE`."""
    where = "this shell"
    for variable, server in known_variables(entries).items():
        if machine.environment.get(variable):
            what = f"{variable} is set, and changes {server} when it is started from here"
            yield warning(where, what, f"unset {variable}, unless you intend this")
    token = machine.environment.get("MCP_TOKEN_FILE")
    if token:
        yield from check_token_file(Path(token), where)


class Trial(NamedTuple):
    """The result of trying one server."""

    findings: list[Finding]
    tools: int | None = None
    """The number of its tools; None if the server was not started, or does not work."""


async def try_launch(
    launch: Launch,
    machine: Machine,
    installation: CheckedInstallation,
    time_limit: float,
    modes: Sequence[str] = MODES,
) -> Trial:
    """Check an entry. If that finds no fault, start or connect to the server once in each of the `modes` of the
    client. It has `time_limit` seconds to answer."""
    server = launch.server
    try:
        findings = list(check_launch(launch, machine))
    except (OSError, ValueError) as error:
        # A path may be too long for the system or contain a null character; a port may have thousands of digits.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        what = f"its arguments can't be examined: {reason}"
        return Trial([fault(launch.where, what, f"correct it in {launch.file}")])
    if any(finding.severity is Severity.FAULT for finding in findings):
        return Trial(findings)
    if not server.enabled:
        return Trial([*findings, fine(launch.where, f"not started: it is disabled in {launch.file}")])
    if server.command is None:
        results, tools = await check_url(launch, machine, installation, time_limit, modes)
        return Trial([*findings, *results], tools)
    if has_placeholders(launch):
        what = "not started: its entry has variables that only the client knows"
        return Trial([*findings, fine(launch.where, what)])
    env = {**environment_from(launch.client, machine), **server.env}
    # Treat the value of a variable as a secret unless the catalog declares it as public.
    public = {argument.environment for argument in launch.entry.arguments if not argument.secret}
    values = [value for variable, value in launch.server.env.items() if variable not in public]
    values.append(machine.environment.get("MCP_TOKEN", ""))
    values += [value for option, value in read_arguments(launch.entry, launch.words).own if option.secret]
    hidden = split_secrets(values)
    correct = f"correct it in {launch.file}"
    tried = TriedServer(
        launch.where, launch.entry, launch.advice, correct, hidden, launch.is_outside_catalog, launch.own_file
    )
    results, tools = await try_modes(
        tried, StartCommand([server.command, *server.args], env, launch.directory), time_limit, modes
    )
    return Trial([*findings, *results], tools)


async def try_modes(
    tried: TriedServer, start: StartCommand, time_limit: float, modes: Sequence[str] = MODES
) -> Trial:
    """Start the server once in each of the `modes`, and return the findings."""
    attempts = [await try_server(start, mode, time_limit) for mode in modes]
    findings = list(judge(tried, attempts))
    is_fault = any(finding.severity is Severity.FAULT for finding in findings)
    return Trial(findings, None if is_fault else attempts[0].tools)
