"""All checks, in their order."""

import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio

from ..catalog import Entry
from ..hosts.clients import Client, Machine
from ..hosts.launching import local_command
from ..program import program
from .configurations import Configuration, Launch, of_machine
from .environments import environment_from
from .findings import Finding, Severity, fine, warning
from .installation import Installation, check_installation
from .judging import Tried
from .shell import check_shell
from .speaking import Start
from .trial import start, try_launch

__all__ = ["Examination", "examine"]

SECONDS = 20.0
"""How long a server may take to answer; clients wait for about a minute."""
AT_ONCE = 4
"""Servers that are started at the same time."""

Step = Callable[[], Awaitable[list[Finding]]]


class Examination(NamedTuple):
    """What is to be looked at."""

    machine: Machine
    installation: Installation
    project: Path
    """The directory whose own configurations count as well."""
    entries: Sequence[Entry]
    """The servers of the catalog, or those that were asked for."""
    asked: bool = False
    """Whether they were asked for by name."""
    clients: Sequence[Client] = ()
    """The clients to look at; all where there is none."""
    seconds: float = SECONDS


async def examine(examination: Examination) -> list[Finding]:
    """Runs all checks. Each server is started twice, once for each era."""
    machine, entries = examination.machine, examination.entries
    found = of_machine(machine, examination.project, entries, examination.clients)
    configured = {launch.entry.name for launch in found.launches}
    used = {entry.name for entry in entries} if examination.asked else configured
    findings = list(check_installation(examination.installation, entries, used))
    broken = {finding.where for finding in findings if finding.severity is not Severity.OK}
    findings += [*check_shell(machine, entries), *found.findings, *_unused(examination, found)]
    steps: list[Step] = [partial(_check, examination, launch) for launch in found.launches]
    if not found.launches or examination.asked:
        rest = [entry for entry in entries if entry.name not in configured | broken]
        steps += [partial(_try_out, examination, entry) for entry in rest]
    return findings + await _all(steps)


def _unused(examination: Examination, found: Configuration) -> Iterator[Finding]:
    for client in examination.clients:
        if not any(launch.client is client for launch in found.launches):
            what = "none of the servers stands in its configuration"
            yield warning(client.title, what, f"put one there: {program()} install NAME --client {client.name}")


async def _all(steps: Sequence[Step]) -> list[Finding]:
    """What the steps find, in their order; some run at the same time."""
    found: list[list[Finding]] = [[] for _ in steps]
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def run(number: int) -> None:
        async with limit:
            found[number] = await steps[number]()

    async with anyio.create_task_group() as tasks:
        for number in range(len(steps)):
            tasks.start_soon(run, number)
    return [finding for findings in found for finding in findings]


async def _check(examination: Examination, launch: Launch) -> list[Finding]:
    return (await try_launch(launch, examination.machine, examination.installation, examination.seconds)).findings


async def _try_out(examination: Examination, entry: Entry) -> list[Finding]:
    """A server that no client has, started with little of its own."""
    with tempfile.TemporaryDirectory(prefix="mcp-doctor-") as folder:
        arguments = _arguments(entry, folder)
        if arguments is None:
            return [fine(entry.name, "not started: it needs arguments, and no client has it")]
        command = local_command(entry, arguments)
        tried = Tried(
            entry.name,
            entry,
            examination.installation.line(again=True),
            f"see what stands in the way of {command[0]}",
        )
        env, home = environment_from(None, examination.machine), Path(examination.machine.home)
        return (await start(tried, Start(command, env, home), examination.seconds)).findings


def _arguments(entry: Entry, folder: str) -> list[str] | None:
    """What a first start needs: a sample of its own, or an empty directory; None where neither will do."""
    if any(argument.name == "demo" for argument in entry.arguments):
        return ["--demo"]
    required = [argument for argument in entry.arguments if argument.required]
    if any(argument.type != "directory" for argument in required):
        return None
    return [word for argument in required for word in ([argument.option] if argument.option else []) + [folder]]
