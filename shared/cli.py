"""`run(app)`: any server as a program, with the same options for all of them.

Exit codes: 0 when it ended in order, 2 for a refused option or a busy port, 1 for a failure of ours.
This is the one file that imports inside functions: what a chosen transport needs is loaded when it is chosen,
so that a stdio server never loads a web server, and what reads a file of settings where there is one.
"""

import logging
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from anyio.abc import TaskGroup
from pydantic import AfterValidator, BaseModel, Field

from .ops.garbage import settle
from .ops.logs import set_up_logging
from .ops.signals import ending_signals
from .options import OptionParser, Written, add_options, complain, hidden, read_options
from .server.app import Server
from .server.dispatch import serve

__all__ = ["Options", "check_arguments", "run"]

log = logging.getLogger("shared.cli")

_TOKEN = re.compile(r"[!-~]+")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def _one_word(token: str) -> str:
    if not _TOKEN.fullmatch(token):
        raise ValueError("a token is one word of printable ASCII characters")
    return token


class Options(BaseModel):
    """The options of every server."""

    settings: Path | None = Field(None, description="TOML file of options by their names, such as log-level")
    transport: Literal["stdio", "http"] = Field("stdio", description="how clients connect")
    host: str = Field("127.0.0.1", description="address to bind, for HTTP")
    port: int = Field(8000, ge=0, le=65535, description="port to bind, for HTTP; 0 takes a free one")
    path: str = Field("/mcp", pattern="^/", description="path of the endpoint, for HTTP")
    allowed_host: list[str] = Field([], description="value of the Host header to accept besides our own address")
    allowed_origin: list[str] = Field([], description="origin of web pages that may connect")
    token_file: Path | None = Field(None, description="file with the token that every HTTP request must carry")
    token: Annotated[str, AfterValidator(_one_word)] | None = hidden(None, "the token itself")
    no_auth: bool = Field(False, description="serve beyond loopback without a token")
    log_level: Literal["debug", "info", "warning", "error"] = Field("warning", description="what is logged to stderr")
    log_format: Literal["text", "json"] = Field("text", description="how log lines look")
    trace: Path | None = Field(None, description="file to write every message to, as JSON lines without secrets")
    max_message: int | None = Field(None, ge=1024, description="bytes of one message (default: 64 MiB, HTTP 4 MiB)")
    max_result: int = Field(900_000, ge=1024, description="bytes of one tool result; hosts drop what exceeds 1 MB")
    max_seconds: float = Field(45.0, gt=0, description="seconds that one call may take")
    max_entries: int = Field(10_000, ge=1, description="entries that one call may list")
    max_calls: int = Field(64, ge=1, description="calls of one client that run at the same time")
    max_sessions: int = Field(10_000, ge=1, description="sessions open at the same time, for HTTP")
    idle_seconds: float = Field(1_800.0, gt=0, description="seconds until an unused session ends, for HTTP")


def run(app: Server[Any], argv: Sequence[str] | None = None) -> int:
    """Runs `app` until its client or a signal ends it; the exit code."""
    _open_standard_streams()
    parser = _parser(app)
    given = parser.read(argv)
    try:
        file, exposed = _settings_file(app, given)
        options = read_options(Options, given, os.environ, "MCP", file)
        settings = read_options(app.settings_model, given, os.environ, _own_prefix(app), file)
        token = _token(options)
        _check_extra(options)
        trace = _open_trace(options)
    except ValueError as error:
        complain(parser, str(error))
    set_up_logging(options.log_level, options.log_format)
    if exposed is not None:
        log.warning("%s: others can read this secret; let nobody but the owner read the file", exposed)
    app.trace = trace
    app.budget = replace(
        app.budget, result_bytes=options.max_result, seconds=options.max_seconds, entries=options.max_entries
    )
    app.limits = replace(app.limits, concurrent_calls=options.max_calls)
    settle()
    fast = options.transport == "http" and find_spec("uvloop") is not None
    refusal: str | None = None
    code = 0
    try:
        anyio.run(_run, app, options, settings, token, backend_options={"use_uvloop": fast})
    except* _CannotStart as group:
        refusal = str(_first(group))
    except* KeyboardInterrupt:
        code = 130
    finally:
        if trace is not None:
            trace.close()
    if refusal is not None:
        complain(parser, refusal)
    return code


def check_arguments(app: Server[Any], arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Reads `arguments` and the variables of `environment` as `run` would, and starts nothing.

    Ends the program, as `run` does, where an option is unknown or has no value. Raises ValueError, in one line, for a
    value that `run` would refuse; what only a start can tell stays untold.
    """
    given = _parser(app).read(arguments)
    file, _ = _settings_file(app, given)
    read_options(Options, given, environment, "MCP", file)
    read_options(app.settings_model, given, environment, _own_prefix(app), file)


class _CannotStart(Exception):
    """The server can't start as the operator has set it up; the text says why, in one line."""


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _open_standard_streams() -> None:
    """Puts something behind 0, 1 and 2 where the caller has closed them, lest a file of ours comes to stand there."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free number is given out first, which is `fd`.
            os.open(os.devnull, os.O_RDWR)


def _own_prefix(app: Server[Any]) -> str:
    return f"MCP_{app.implementation.name.replace('-', '_')}"


def _parser(app: Server[Any]) -> OptionParser:
    implementation = app.implementation
    name = implementation.name
    parser = OptionParser(
        f"python -m servers.{name}",
        implementation.description,
        "Each option can also be set by the environment variable in brackets.",
    )
    parser.add_argument("--version", action="version", version=f"{name} {implementation.version}")
    add_options(parser, app.settings_model, f"{name} options", _own_prefix(app))
    add_options(parser, Options, "options of every server", "MCP")
    return parser


def _settings_file(app: Server[Any], given: Namespace) -> tuple[Mapping[str, Written], str | None]:
    """What stands in the file of settings, and which secret in it others can read. Raises ValueError."""
    path = getattr(given, "settings", os.environ.get("MCP_SETTINGS") or None)
    if path is None:
        return {}, None
    from .settings_file import read_settings_file

    # It can't name another such file.
    own = {name: field for name, field in Options.model_fields.items() if name != "settings"}
    return read_settings_file(Path(path), {**app.settings_model.model_fields, **own})


def _token(options: Options) -> str | None:
    """The token that HTTP requests must carry. Raises ValueError where it is missing but needed, or unusable."""
    token = options.token if options.token_file is None else _read_token(options.token_file)
    if options.transport == "http" and not (token or options.no_auth or options.host in LOOPBACK):
        raise ValueError(
            f"--host {options.host} is reachable from other machines: give a token by --token-file or MCP_TOKEN, "
            "or say --no-auth"
        )
    return token


def _read_token(path: Path) -> str:
    try:
        token = path.read_bytes().decode("ascii", "replace").strip()
    except OSError as error:
        raise ValueError(f"--token-file: {path}: {error.strerror}") from None
    if not token:
        raise ValueError(f"--token-file: {path} is empty")
    try:
        return _one_word(token)
    except ValueError as error:
        raise ValueError(f"--token-file: {path}: {error}") from None


def _check_extra(options: Options) -> None:
    """Raises ValueError where the transport needs what is not installed."""
    if options.transport == "http" and any(find_spec(name) is None for name in ("starlette", "uvicorn", "httptools")):
        raise ValueError("--transport http needs the extra 'http': pip install 'mcp-server-bundle[http]'")


def _open_trace(options: Options) -> Any:
    """The trace that was asked for. Raises ValueError where its file can't be had."""
    if options.trace is None:
        return None
    from .ops.trace import Trace

    try:
        return Trace(options.trace)
    except OSError as error:
        raise ValueError(f"--trace: {options.trace}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"--trace: {error}") from None


async def _run(app: Server[Any], options: Options, settings: BaseModel, token: str | None) -> None:
    async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        stack.callback(tasks.cancel_scope.cancel)
        with _starting():
            await stack.enter_async_context(app.running(settings))
        if options.transport == "stdio":
            await _run_stdio(app, options, tasks)
        else:
            await _run_http(app, options, token, tasks)


@contextmanager
def _starting(what: str = "") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise _CannotStart(f"{what or error.filename or ''}: {reason}".removeprefix(": ")) from error
    except ValueError as error:
        raise _CannotStart(str(error)) from error


async def _run_stdio(app: Server[Any], options: Options, tasks: TaskGroup) -> None:
    from .transports.stdio import MAX_MESSAGE, stdio

    async with stdio(options.max_message or MAX_MESSAGE) as transport:
        tasks.start_soon(_end_in_time, transport.ended, 2 * app.limits.drain_seconds)
        with anyio.CancelScope() as serving:

            def stop() -> None:
                # A client that has ended its stream and sends a signal nevertheless has lost its patience.
                (serving.cancel if transport.ended.is_set() else transport.stop)()

            with ending_signals(stop):
                await serve(app, transport)


async def _end_in_time(ended: anyio.Event, seconds: float) -> None:
    """Ends the program some time after its input, whatever keeps it: work in a thread can't be cancelled."""
    await ended.wait()
    await anyio.sleep(seconds)
    log.error("something did not end within %g s and is left behind", seconds)
    logging.shutdown()
    os._exit(1)


async def _run_http(app: Server[Any], options: Options, token: str | None, tasks: TaskGroup) -> None:
    from .transports.http_endpoint import EndpointLimits
    from .transports.http_limits import SessionLimits
    from .transports.http_server import HttpOptions, run_http

    stop = anyio.Event()
    limits = EndpointLimits(sessions=SessionLimits(options.max_sessions, options.idle_seconds))
    bound = HttpOptions(
        host=options.host,
        port=options.port,
        path=options.path,
        allowed_hosts=tuple(options.allowed_host),
        allowed_origins=tuple(options.allowed_origin),
        tokens=() if token is None else (token,),
        limits=replace(limits, body_bytes=options.max_message or limits.body_bytes),
    )
    tasks.start_soon(_end_in_time, stop, 2 * app.limits.drain_seconds)
    announce = partial(_announce, options)
    with ending_signals(stop.set), _starting(f"can't listen on {options.host} port {options.port}"):
        await run_http(app, bound, started=announce, stop=stop)


def _announce(options: Options, host: str, port: int) -> None:
    """Says where it listens, whatever the log level is: people and programs wait for this line."""
    text = f"listening on http://{f'[{host}]' if ':' in host else host}:{port}{options.path}"
    if options.log_format == "json":
        log.handle(log.makeRecord(log.name, logging.INFO, __file__, 0, text, (), None))
    else:
        print(text, file=sys.stderr, flush=True)  # noqa: T201
