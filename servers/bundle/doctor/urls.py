"""Checks the server at the URL in a client's entry.

The library for HTTP is an extra, without which the doctor must still work.
"""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from urllib.parse import urlsplit

from servers.common.machine import Machine
from servers.gateway.proxy.urls import display_url
from shared.client.connect import connect_http
from shared.client.options import ClientOptions

from .arguments import environment_from
from .configurations import Launch
from .findings import Finding, Severity, fault, fine, warning
from .installation import CheckedInstallation
from .logins import check_logins
from .prompt_files import problem_findings
from .trials import MODES, Attempt, Outcome, TriedServer, converse, judge_version, mask, split_secrets

_TOKENS = ("authorization", "x-api-key")
_UNREACHED = "no connection"


async def check_url(
    launch: Launch,
    machine: Machine,
    installation: CheckedInstallation,
    time_limit: float,
    modes: Sequence[str] = MODES,
) -> tuple[list[Finding], int | None]:
    """Connect to the server once in each of the `modes`, with the headers of the entry. Return the findings, and the
    number of its tools; None if there is a fault or the server was not checked."""
    url, headers, token = launch.server.url or "", dict(launch.server.headers), ""
    if variable := launch.server.token_variable:
        token = environment_from(launch.client, machine).get(variable, "")
        if not token:
            title = launch.client.title
            what = f"not checked: {variable}, from which {title} takes the token, is empty or not set in this shell"
            return [warning(launch.where, what, f"set {variable} where {title} is started")], None
        headers["Authorization"] = f"Bearer {token}"
    if "${" in url or any("${" in value for value in headers.values()):
        return [fine(launch.where, "not checked: its entry has variables that only the client knows")], None
    if find_spec("aiohttp") is None:
        return [
            warning(launch.where, "not checked: aiohttp is missing", installation.install_command("client"))
        ], None
    try:
        if urlsplit(url).scheme not in ("http", "https"):
            return [fine(launch.where, "not checked: its URL is not http:// or https://")], None
        # One after another, since a server may allow only one session.
        attempts = [
            await converse(connect_http(url, ClientOptions(mode=mode), headers=headers), mode, time_limit)
            for mode in modes
        ]
    except ValueError:
        what = "its URL or one of its headers can't be sent"
        return [fault(launch.where, what, f"correct it in {launch.file}")], None
    if not token and any(attempt.code == 401 for attempt in attempts) and not _has_token(launch):
        login = await check_logins(launch.where, display_url(url), url)
        if login is not None:
            return [login], None
    findings = list(_judge_attempts(launch, attempts, [*split_secrets(headers.values()), token, url]))
    return findings, None if any(finding.severity is Severity.FAULT for finding in findings) else attempts[0].tools


def _judge_attempts(launch: Launch, attempts: list[Attempt], secrets: Sequence[str]) -> Iterator[Finding]:
    failed = [attempt for attempt in attempts if attempt.outcome is not Outcome.ANSWERED]
    if failed:
        yield _explain_failure(launch, failed[0], secrets)
        return
    shown_url = display_url(launch.server.url or "")
    tried = TriedServer(
        launch.where, launch.entry, f"correct the URL in {launch.file}", "", secrets, launch.is_outside_catalog
    )
    mismatches = list(judge_version(tried, attempts[0]))
    yield from mismatches
    if not mismatches:
        yield fine(
            launch.where, f"{shown_url} answers, and speaks {' and '.join(attempt.version for attempt in attempts)}"
        )
    yield from problem_findings(launch.where, attempts[0].problems)


def _explain_failure(launch: Launch, attempt: Attempt, secrets: Sequence[str]) -> Finding:
    where, shown_url, entry = launch.where, display_url(launch.server.url or ""), launch.entry
    reason = mask(attempt.reason, secrets)
    if reason.startswith(_UNREACHED):
        what = f"nothing answers at {shown_url} ({reason.partition(': ')[2]})"
        start = "start it"
        if not launch.is_outside_catalog:
            port = urlsplit(launch.server.url or "").port
            unnamed = [argument.metavar or argument.name for argument in entry.arguments if argument.option is None]
            words = ["--transport http", *([f"--port {port}"] if port else []), *unnamed]
            start += ": " + " ".join([entry.script or f"python -m {entry.module}", *words])
        return fault(where, what, f"{start}, or correct the URL in {launch.file}")
    if attempt.outcome is Outcome.SILENT:
        return fault(
            where,
            f"{shown_url} accepts the connection, but gives {attempt.reason}",
            "stop the program that listens there, and restart it",
        )
    if attempt.code == 401 and (variable := launch.server.token_variable):
        what = f"{shown_url} does not accept the token in {variable}"
        return fault(where, what, f"set it to the correct one where {launch.client.title} is started")
    if attempt.code == 401:
        fix = f"put its token in {launch.file}, as the header Authorization: Bearer TOKEN"
        if not _has_token(launch):
            # Only a warning, since some clients store the token elsewhere.
            return warning(where, f"{shown_url} requires a token, and no header of the entry has one", fix)
        return fault(where, f"{shown_url} does not accept the token of the entry", fix)
    if attempt.code == 403:
        return fault(where, f"{shown_url} refuses this client", "start it with --allowed-host or --allowed-origin")
    what = f"the program that listens at {shown_url} is not an MCP server, or has another path: {reason}"
    fix = "the path is /mcp, or /NAME/mcp with serve; if it is another program, give the server another --port"
    return fault(where, what, f"{fix}, and correct the URL in {launch.file}")


def _has_token(launch: Launch) -> bool:
    return any(name.lower() in _TOKENS for name in launch.server.headers)
