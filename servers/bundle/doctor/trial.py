"""One server as a client has it: looked at, started, and spoken to."""

from collections.abc import Sequence
from typing import NamedTuple

from ..hosts.clients import Machine
from .command_line import read_arguments
from .configurations import Launch
from .environments import environment_from
from .findings import Finding, Severity, fault, fine
from .installation import Installation
from .judging import Tried, judge, with_parts
from .launches import check_launch, is_filled_in
from .speaking import MODES, Start, talk
from .urls import check_url

__all__ = ["Trial", "start", "try_launch"]


class Trial(NamedTuple):
    """What came of it."""

    findings: list[Finding]
    tools: int | None = None
    """How many it has; None where it was not spoken to, or does not work."""


async def try_launch(
    launch: Launch, machine: Machine, installation: Installation, seconds: float, modes: Sequence[str] = MODES
) -> Trial:
    """Starts or reaches it where nothing stands against that, once for each of the `modes`, with so many `seconds`
    to answer."""
    server = launch.server
    try:
        findings = list(check_launch(launch, machine))
    except (OSError, ValueError) as error:
        # A path may be longer than systems take, or have a null character; a port may have thousands of digits.
        reason = error.strerror if isinstance(error, OSError) else str(error)
        what = f"what it is started with can't be looked at: {reason}"
        return Trial([fault(launch.where, what, f"correct it in {launch.file}")])
    if any(finding.severity is Severity.FAULT for finding in findings):
        return Trial(findings)
    if not server.enabled:
        return Trial([*findings, fine(launch.where, f"not started: it is switched off in {launch.file}")])
    if server.command is None:
        found, tools = await check_url(launch, machine, installation, seconds, modes)
        return Trial([*findings, *found], tools)
    if is_filled_in(launch):
        what = "not started: its entry has variables that only the client knows"
        return Trial([*findings, fine(launch.where, what)])
    env = {**environment_from(launch.client, machine), **server.env}
    hidden = _secrets(launch, machine)
    tried = Tried(launch.where, launch.entry, launch.another, f"correct it in {launch.file}", hidden)
    found, tools = await start(tried, Start([server.command, *server.args], env, launch.directory), seconds, modes)
    return Trial([*findings, *found], tools)


async def start(tried: Tried, how: Start, seconds: float, modes: Sequence[str] = MODES) -> Trial:
    """Starts it in each of the `modes`."""
    talks = [await talk(how, mode, seconds) for mode in modes]
    findings = list(judge(tried, talks))
    is_fault = any(finding.severity is Severity.FAULT for finding in findings)
    return Trial(findings, None if is_fault else talks[0].tools)


def _secrets(launch: Launch, machine: Machine) -> list[str]:
    """What the entry holds that nobody else should see, as a whole and in its parts."""
    known = {argument.environment for argument in launch.entry.arguments if not argument.secret}
    values = [value for variable, value in launch.server.env.items() if variable not in known]
    values.append(machine.environment.get("MCP_TOKEN", ""))
    values += [value for one, value in read_arguments(launch.entry, launch.words).own if one.secret]
    return with_parts(values)
