"""`run(app)` runs any server as a program, with the same options for all servers.

Exit codes: 0 after a clean end, 2 for an unusable option or a port in use, 1 for an internal failure.

Modules for a transport are imported when it is chosen, so that a stdio server never imports a web server. Modules for
a settings file are imported only if there is one.
"""

import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel

from ..errors import DeclarationError
from ..extensions.dialects import DIALECTS
from ..protocol.wire.codec import MAX_MESSAGE
from ..server.dispatch.connection import serve
from ..server.extension import Extension
from ..server.functions.location import locate_errors
from ..server.run import Run
from ..server.server import Server
from .messages import exit_with_error, missing_extra_message, program_name
from .observation import open_telemetry
from .process import (
    Options,
    announce,
    end_in_time,
    explain_in_terminal,
    explain_startup_errors,
    http_options,
    lacks_http_extra,
    listener_url,
    open_standard_streams,
    read_listener_token,
    run_listener,
    run_program,
    set_limits,
    set_up_process,
    stop_on_signals,
)
from .replication import StoresFactory, stores_factory
from .rules import rule_extensions
from .settings.option_parser import OptionParser
from .settings.options import FileValue, Group, option_spellings, read_options
from .worker import has_workers

if TYPE_CHECKING:
    from ..transports.http.app.app import HttpOptions

__all__ = [
    "Options",
    "audit_extensions",
    "becomes_ready",
    "open_audit",
    "open_trace",
    "read_arguments",
    "run",
    "run_app",
    "run_stdio",
    "send_metrics",
    "trace_extensions",
    "variable_prefix",
]


def run(app: Server[Any], argv: Sequence[str] | None = None, *, epilog: str = "") -> int:
    """Run `app` until its client or a signal ends it, and return the exit code. `epilog` is the last text of its
    help."""
    open_standard_streams()
    program = program_name() if argv is None else app.implementation.name
    try:
        options, settings, exposed = read_arguments(app, program, argv, os.environ, epilog)
    except ValueError as error:
        exit_with_error(program, str(error))
    return run_app(program, app, options, settings, exposed=exposed)


def run_app(
    program: str,
    app: Server[Any],
    options: Options,
    settings: BaseModel | None = None,
    *,
    exposed: str | None = None,
    wait_ready: Callable[[], Awaitable[None]] | None = None,
) -> int:
    """Run `app`, over the transport in `options`, until its client or a signal ends it, and return the exit code.

    `exposed` is the location of a secret that other users can read. `wait_ready` is awaited when the server is open,
    and no client is served before it returns; it may raise `Failed`. If the options can't be used, the program ends
    with a message that begins with its name `program`.
    """
    if has_workers(options):
        from .workers import supervise

        # The parent process opens nothing: each worker reads the options again, and opens what it needs.
        return supervise(program, options, exposed)
    try:
        token = read_listener_token(options)
        if options.transport == "http" and lacks_http_extra():
            raise ValueError(f"--transport http: {missing_extra_message('http')}")
        http = http_options(options, token) if options.transport == "http" else None
        stores = None if http is None else stores_factory(options)
        trace, audit = open_trace(options), open_audit(options)
        telemetry = open_telemetry(options, app.implementation.name)
    except ValueError as error:
        exit_with_error(program, str(error))
    set_up_process(options, exposed)
    set_limits(app, options)
    if options.transport == "stdio" and os.isatty(0):
        explain_in_terminal(program)
    try:
        return run_program(
            program,
            partial(_run, _App(app, settings, wait_ready, audit, stores, telemetry), options, http, trace),
            prefer_uvloop=options.transport == "http",
        )
    finally:
        for records in filter(None, (trace, audit, telemetry)):
            records.close()


class _App(NamedTuple):
    """The server to run, with its settings, stores and telemetry."""

    app: Server[Any]
    settings: BaseModel | None
    wait_ready: Callable[[], Awaitable[None]] | None
    audit: Any = None
    stores: StoresFactory | None = None
    telemetry: Any = None


def read_arguments(
    app: Server[Any], program: str, arguments: Sequence[str] | None, environment: Mapping[str, str], epilog: str = ""
) -> tuple[Options, BaseModel, str | None]:
    """Return the common options, the settings of `app`, and the location of a secret in its settings file that other
    users can read, if any. If `arguments` is None, the arguments of this process are read.

    Ends the program, which is called `program`, if an option is unknown or has no value. Raises ValueError with a
    one-line message for a bad value; errors that only occur at startup are not detected.
    """
    line_values = _make_parser(app, program, epilog).read(arguments)
    file: Mapping[str, FileValue] = {}
    exposed = None
    path = line_values.get("settings", environment.get("MCP_SETTINGS") or None)
    if path is not None:
        from .settings.settings_file import read_settings_file
        from .settings.tables import TABLES

        # A settings file can't name another one.
        common_fields = {name: field for name, field in Options.model_fields.items() if name != "settings"}
        fields = {**app.settings_model.model_fields, **common_fields, **TABLES}
        file, exposed = read_settings_file(Path(str(path)), fields)
    # The defaults are not validated: building the validator of a hundred options takes 3 % of a start and 1 MiB, and
    # most servers are started without options.
    options = read_options(Options, line_values, environment, "MCP", file, has_valid_defaults=True)
    settings = read_options(app.settings_model, line_values, environment, variable_prefix(app), file)
    if file and options.settings is not None:
        from .settings.tables import read_rules

        options.set_rules(read_rules(file, options.settings, settings))
    return options, settings, exposed


def variable_prefix(app: Server[Any]) -> str:
    """Return the prefix of the environment variables for a server's own options: `MCP_` and its name, with `_` for
    characters that shells do not allow in variables."""
    return f"MCP_{re.sub(r'[^A-Za-z0-9_]', '_', app.implementation.name)}"


def _make_parser(app: Server[Any], program: str, epilog: str = "") -> OptionParser:
    model = app.settings_model
    common = {"--help", "--help-all", "--version", *option_spellings(Options.model_fields)}
    for field_name, field in model.model_fields.items():
        if field_name in Options.model_fields or not common.isdisjoint(option_spellings({field_name: field})):
            with locate_errors(None):
                raise DeclarationError(
                    f"{model.__name__}.{field_name}: every server has an option with this name; give the field "
                    f"another name, such as own_{field_name}"
                )
    implementation = app.implementation
    name = implementation.name
    parser = OptionParser(
        program,
        [
            Group(model.model_fields, f"{name} options", variable_prefix(app)),
            Group(Options.model_fields, "common server options", "MCP"),
        ],
        implementation.description,
        f"Each option can also be set by the environment variable in brackets. {epilog}",
    )
    parser.version = f"{name} {implementation.version}"
    return parser


def open_trace(options: Options) -> Any:
    """Return the trace that the options require, or None. Raises ValueError if its file can't be opened."""
    if options.trace is None:
        return None
    from ..telemetry.trace import Trace

    try:
        return Trace(options.trace)
    except OSError as error:
        raise ValueError(f"--trace: {options.trace}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"--trace: {error}") from None


def open_audit(options: Options) -> Any:
    """Return the audit log that the options require, or None. Raises ValueError if its file can't be opened."""
    if options.audit is None:
        return None
    if find_spec("filelock") is None:
        raise ValueError(f"--audit: {missing_extra_message('auth')}")
    from ..telemetry.audit import Audit
    from ..telemetry.audit_file import AuditFile

    try:
        file = AuditFile(options.audit, max_bytes=options.audit_bytes, files=options.audit_files)
    except OSError as error:
        raise ValueError(f"--audit: {options.audit}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"--audit: {error}") from None
    return Audit(file, arguments=options.audit_arguments, required=options.audit_required)


def audit_extensions(audit: Any, server: str) -> list[Extension[Any]]:
    """Return the extension that records in `audit` the calls to the server with that name; empty without an audit
    log."""
    if audit is None:
        return []
    from ..telemetry.audit import audit_calls

    return [audit_calls(audit, server)]


def trace_extensions(telemetry: Any, server: str, *, over_http: bool) -> list[Extension[Any]]:
    """Return the extension that creates a span for each request to the server with that name; empty without
    `telemetry`."""
    if telemetry is None:
        return []
    from ..telemetry.request_spans import trace_calls

    return [trace_calls(server, over_http=over_http)]


def send_metrics(telemetry: Any, running: Run[Any], server: str) -> None:
    """Let `telemetry`, if there is one, send the metrics of a server on stdio."""
    if telemetry is None:
        return
    from ..telemetry.metrics import Figures, Metrics

    metrics = Metrics()
    metrics.attach(running)

    def figures() -> list[Figures]:
        subscriptions = sum(part.changes.subscribed_resources for part in running.parts.all)
        return [Figures(server, metrics, running.hooks.is_reachable(), 1, 1, subscriptions, {})]

    telemetry.watch({server: metrics}, figures)


async def _run(setup: _App, options: Options, http: "HttpOptions | None", trace: Any) -> None:
    async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        # At the end, tasks that wait for a signal or a timer are cancelled: they would keep the program running.
        stack.callback(tasks.cancel_scope.cancel)
        name = setup.app.implementation.name
        rules = rule_extensions(options.rules, name, tokens_have_scopes=options.tokens_have_scopes)
        extensions = [
            *([DIALECTS] if options.dialects == "on" else []),
            *rules,
            *audit_extensions(setup.audit, name),
        ]
        stores = None if setup.stores is None else setup.stores(name)
        extensions += trace_extensions(setup.telemetry, name, over_http=http is not None)
        with explain_startup_errors():
            running = await stack.enter_async_context(
                setup.app.open(setup.settings, extensions=extensions, stores=stores)
            )
        running.hooks.trace = trace
        if setup.wait_ready is not None and not await becomes_ready(setup.wait_ready):
            return
        if http is None:
            send_metrics(setup.telemetry, running, name)
            await run_stdio(running, options, tasks)
        else:
            http = replace(http, audit=setup.audit, telemetry=setup.telemetry)
            from ..transports.http.server import run_http

            def started(host: str, port: int) -> None:
                announce(options, f"listening on {listener_url(host, port)}{options.path}")

            with run_listener(options, tasks, running.calls.limits.drain_seconds) as stop:
                await run_http(running, http, started=started, stop=stop)


async def becomes_ready(wait_ready: Callable[[], Awaitable[None]]) -> bool:
    """Await `wait_ready`. Return False if a signal has ended the program during the wait."""
    with anyio.CancelScope() as scope, stop_on_signals(scope.cancel):
        await wait_ready()
    return not scope.cancelled_caught


async def run_stdio(running: Run[Any], options: Options, tasks: TaskGroup) -> None:
    """Serve the client at the other end of the standard streams until the client or a signal ends that. If work does
    not end in time, a task in `tasks` ends the program."""
    from ..transports.stdio import stdio

    async with stdio(options.max_message or MAX_MESSAGE, dialects=options.dialects == "on") as transport:
        tasks.start_soon(end_in_time, transport.ended, 2 * running.calls.limits.drain_seconds)
        with anyio.CancelScope() as serve_scope:

            def stop() -> None:
                running.stop()
                # A client that has ended its stream and sends a signal does not want to wait for pending calls.
                (serve_scope.cancel if transport.ended.is_set() else transport.stop)()

            async def cancel_when_gone() -> None:
                # Pending calls are cancelled: if the client gets no result, the work must not be done.
                await transport.wait_gone()
                serve_scope.cancel()

            tasks.start_soon(cancel_when_gone)
            with stop_on_signals(stop):
                await serve(running, transport)
