"""Runs several servers in one process, on one port, until a signal ends it.

The servers share the event loop and the threads. A server that waits, fails or hangs does not affect the others, but
a server that blocks the event loop delays all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import anyio
from anyio import to_thread

from shared.program.messages import exit_with_error
from shared.program.observation import open_telemetry
from shared.program.process import (
    Options,
    announce,
    exit_at_once,
    http_options,
    listener_url,
    read_listener_token,
    run_listener,
    run_program,
    set_up_process,
)
from shared.program.replication import stores_factory
from shared.program.run import open_audit, open_trace
from shared.transports.http.app.app import HttpOptions, RootPage
from shared.transports.http.app.mount import Mount
from shared.transports.http.server import run_mounts

from ..joined.gateway import JoinedSettings
from .bridge_server import log_commands
from .choice import Choice, third_party_names
from .gateway_server import make_gateway, principal_extensions, wait_until_settled
from .selection import JOINED


def run_all(
    program: str,
    options: Options,
    choice: Choice,
    exposed: str | None,
    root_page: RootPage | None,
    report_url: Callable[[str], None] | None = None,
) -> int:
    """Serve each chosen server at `/NAME/mcp`, the gateway that joins some of them at `/mcp`, and `root_page`, such
    as the workbench, at `/`. Return the exit code. `report_url`, if set, is called with the URL instead of a message
    on stderr. `exposed` is the location of a secret that other users can read, if any: a warning names it. Exits with
    a message if it can't start."""
    try:
        trace, audit = open_trace(options), open_audit(options)
        telemetry = open_telemetry(options, "mcp-servers")
        http = replace(http_options(options, read_listener_token(options)), audit=audit, telemetry=telemetry)
        stores = stores_factory(options)
    except ValueError as error:
        exit_with_error(program, str(error))
    set_up_process(options, exposed)
    log_commands(options.log_level)
    mounts: list[Mount] = []
    for server in choice.servers:
        server.apply_limits(options)
        mount = Mount(server.app, f"/{server.name}/mcp", http.limits, server.settings, server.name)
        mount.trace = trace and trace.for_server(server.name)
        mount.extensions += server.extensions(options)
        mounts.append(mount)
    if choice.joined:
        members = [mount for mount in mounts if mount.name in choice.joined]
        supervised = [mount.supervised for mount in members]
        declarations = [mount.server for mount in members]
        app = make_gateway(supervised, declarations, choice.prefix, third_party_names(choice.servers))
        mount = Mount(app, "/mcp", http.limits, JoinedSettings(), JOINED)
        mount.extensions += principal_extensions(
            [server.rules for server in choice.servers if server.name in choice.joined]
        )
        mount.scopes = partial(_unite_scopes, members)
        mount.before_opening = partial(wait_until_settled, supervised)
        mount.trace = trace and trace.for_server(JOINED)
        mounts.append(mount)
    for mount in mounts:
        mount.stores = None if stores is None else stores(mount.name)
    try:
        notes = [server.defaults_note for server in choice.servers if server.defaults_note]
        main = partial(_run, mounts, http, root_page, report_url, options, notes)
        return run_program(program, main, prefer_uvloop=True)
    finally:
        for records in filter(None, (trace, audit, telemetry)):
            records.close()


def _unite_scopes(members: Sequence[Mount]) -> tuple[list[str], list[str]]:
    """Return the scopes that any of the `members` supports, and those that clients should request first. They apply
    to the gateway too, since tools need the same scopes there."""
    supported, requested_first = zip(*(member.scopes() for member in members), strict=True)
    return sorted(set().union(*supported)), sorted(set().union(*requested_first))


async def _run(
    mounts: Sequence[Mount],
    http: HttpOptions,
    root_page: RootPage | None,
    report_url: Callable[[str], None] | None,
    options: Options,
    notes: Sequence[str],
) -> None:
    # The servers share the threads of the process. Allow as many as they would have together if each ran alone.
    to_thread.current_default_thread_limiter().total_tokens *= len(mounts)
    paths = ", ".join(mount.path.removeprefix("/") for mount in mounts)

    def started(host: str, port: int) -> None:
        url = f"{listener_url(host, port)}/"
        if report_url is None:
            announce(options, "; ".join([f"listening on {url} ({paths})", *notes]))
        else:
            report_url(url)

    drain_seconds = max(mount.drain_seconds for mount in mounts)
    async with anyio.create_task_group() as tasks:
        with run_listener(options, tasks, drain_seconds) as stop:
            have_all_ended = await run_mounts(mounts, http, root_page, started=started, stop=stop)
        # The tasks of a server that has not ended would keep the process alive.
        if not have_all_ended:
            exit_at_once()
        tasks.cancel_scope.cancel()
