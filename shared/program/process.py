"""The common parts of programs that run one server or several: options, start, and end.

Exit codes: 0 after a clean end, 2 for an unusable option or a port in use, 1 for an internal failure. HTTP modules
are only imported when a listener needs them.
"""

import asyncio
import errno
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
from anyio.abc import TaskGroup
from pydantic import AfterValidator, BaseModel, Field

from ..concurrency import first_error
from ..contracts import TaskLimits
from ..errors import DeclarationError
from ..server.server import Server
from ..telemetry.footprint import set_up_collector
from ..telemetry.logs import set_up_logging
from ..text import plain
from ..transports.http.listener import LINGER_SECONDS
from .event_loop import new_event_loop
from .messages import exit_with_error
from .observation import ObservationOptions
from .protection import ProtectionOptions
from .replication import ReplicaOptions
from .settings.options import option, secret
from .worker import this_worker

if TYPE_CHECKING:
    from ..transports.http.app.app import HttpOptions

log = logging.getLogger("shared.program")

_TOKEN = re.compile(r"[!-~]+")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def _check_token(token: str) -> str:
    if not _TOKEN.fullmatch(token):
        raise ValueError("a token must be one word of printable ASCII characters")
    return token


class GeneralOptions(BaseModel, defer_build=True):
    """The options of every server, except those about its users, about observing it, and about replicas."""

    settings: Path | None = option(None, "TOML file of options by name, such as log-level", "FILE")
    transport: Literal["stdio", "http"] = Field("stdio", description="how clients connect")
    host: str = Field("127.0.0.1", description="address to bind, for HTTP")
    port: int = Field(8000, ge=0, le=65535, description="port to bind, for HTTP; 0 picks a free one")
    path: str = Field("/mcp", pattern="^/", description="path of the endpoint, for HTTP")
    allowed_host: list[str] = Field(
        [], description="host name that clients may use (default: loopback names on loopback, otherwise any)"
    )
    allowed_origin: list[str] = Field([], description="web origin that may connect")
    cards: bool = Field(False, description="publish server cards and a catalog of them to everyone, for HTTP")
    token_file: Path | None = option(None, "file with the token that every HTTP request must carry", "FILE")
    token: Annotated[str, AfterValidator(_check_token)] | None = secret(None, "the token itself")
    no_auth: bool = Field(False, description="let other machines connect without a token")
    dialects: Literal["on", "off"] = Field(
        "on", description="accept variants of the protocol, and Content-Length headers on stdio"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="lowest level logged to stderr"
    )
    log_format: Literal["text", "json"] = Field("text", description="format of log lines")
    trace: Path | None = option(None, "file that records every message, as JSON lines without secrets", "FILE")
    max_message: int | None = Field(None, ge=1024, description="bytes of one message (default: 64 MiB, HTTP 4 MiB)")
    max_result: int = Field(900_000, ge=1024, description="bytes of one tool result; hosts drop results over 1 MB")
    max_text: int | None = Field(
        None, ge=1024, description="bytes of text in one tool result (default: the limit of the host, if known)"
    )
    max_seconds: float = Field(45.0, gt=0, description="seconds that one call may take")
    max_entries: int = Field(10_000, ge=1, description="entries that one call may list")
    max_calls: int = Field(64, ge=1, description="calls of one client that may run at the same time")
    question_seconds: float = Field(600.0, gt=0, description="seconds until a question to a user is withdrawn")
    max_tasks: int = Field(10_000, ge=1, description="tasks of all clients, running or finished")
    max_client_tasks: int = Field(1_000, ge=1, description="tasks of one client")
    max_task_results: int = Field(64 * 1024 * 1024, ge=1024, description="bytes of the results of all tasks")
    task_seconds: float = Field(3_600.0, gt=0, description="seconds until a task expires, running or finished")
    max_sessions: int = Field(10_000, ge=1, description="HTTP sessions that may be open at the same time")
    idle_seconds: float = Field(1_800.0, gt=0, description="seconds until an unused session ends, for HTTP")


class Options(ObservationOptions, ReplicaOptions, ProtectionOptions, GeneralOptions):
    """The options of every server."""


# Reading the options


def read_listener_token(options: Options) -> str | None:
    """Return the token that HTTP requests must carry. Raises ValueError if it is missing but needed, or unusable."""
    token, path = options.token, options.token_file
    if path is not None:
        from ..auth.tokens_file import read_token

        try:
            token = read_token(path.read_bytes().decode("ascii", "replace"), path)
        except OSError as error:
            raise ValueError(f"--token-file: {path}: {error.strerror}") from None
        except ValueError as error:
            raise ValueError(f"--token-file: {error}") from None
    # Locally, no token is needed: programs of this user on this machine can already do what the server does.
    if options.transport == "stdio" or options.host in LOOPBACK:
        return token
    if not (token or options.no_auth or options.tokens_file or options.auth_issuer):
        raise ValueError(
            f"--host {options.host} is reachable from other machines: set a token with --token-file or MCP_TOKEN, "
            "several with --tokens-file, or their issuer with --auth-issuer; or use --no-auth"
        )
    if options.auth_issuer and options.public_url is None:
        raise ValueError(
            "--auth-issuer: set --public-url to the URL at which clients reach this server, since tokens are issued "
            "for it"
        )
    return token


def _check_network(text: str) -> str:
    try:
        return str(ip_network(text, strict=False))
    except ValueError:
        raise ValueError(f"--trusted-proxy: {text!r} is not an IP address or network") from None


def http_options(options: Options, token: str | None) -> "HttpOptions":
    """Return the address, the users and the limits of an HTTP listener. Raises ValueError if the options can't be
    used."""
    from ..transports.http.app.app import HttpOptions
    from ..transports.http.limits.endpoint_limits import ClientLimits, EndpointLimits, SessionLimits
    from .authorization import authenticator_of, check_public_url, issuers_of, static_tokens

    worker = this_worker()
    limits = EndpointLimits(
        sessions=SessionLimits(sessions=options.max_sessions, idle_seconds=options.idle_seconds),
        dialects=options.dialects == "on",
        clients=ClientLimits(
            options.max_rate,
            options.max_burst,
            options.max_client_calls,
            options.max_client_sessions,
            options.max_client_bytes,
        ),
    )
    return HttpOptions(
        host=options.host,
        port=options.port,
        path=options.path,
        allowed_hosts=tuple(options.allowed_host),
        allowed_origins=tuple(options.allowed_origin),
        authenticator=authenticator_of(options, static_tokens(options, token, options.token_file)),
        issuers=issuers_of(options),
        public_url=options.public_url and check_public_url(options.public_url),
        cards=options.cards,
        trusted_proxies=tuple(map(_check_network, options.trusted_proxy)),
        limits=replace(limits, body_bytes=options.max_message or limits.body_bytes),
        listener=None if worker is None else worker.listener,
        siblings=None if worker is None else worker.siblings,
        access_log=options.access_log,
    )


def listener_url(host: str, port: int) -> str:
    """Return the URL of a listener, without a path."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def lacks_http_extra() -> bool:
    """Return True if a package that HTTP needs is not installed."""
    return any(find_spec(name) is None for name in ("starlette", "uvicorn", "httptools"))


def open_standard_streams() -> None:
    """Open the descriptors 0, 1 and 2 if the caller has closed them, so that no other file gets their number."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            # The system assigns the lowest free number, which is `fd`.
            os.open(os.devnull, os.O_RDWR)


def set_up_process(options: Options, exposed: str | None) -> None:
    """Set up logging and other settings of the whole process. `exposed` is the location of a secret that other users
    can read; if there are several processes, only the parent warns about it."""
    worker = this_worker()
    set_up_logging(options.log_level, options.log_format, None if worker is None else worker.siblings.number)
    if options.access_log:
        logging.getLogger("shared.access").setLevel(logging.INFO)  # whatever the log level
    if exposed is not None and worker is None:
        log.warning("%s: other users can read this secret; restrict the file to its owner", exposed)
    set_up_collector()


def set_limits(app: Server[Any], options: Options) -> None:
    """Set the limits of the operator on `app`."""
    app.budget = replace(
        app.budget,
        result_bytes=options.max_result,
        text_bytes=options.max_text,
        seconds=options.max_seconds,
        entries=options.max_entries,
    )
    # There must be room for several messages of the maximum size.
    call_bytes = max(app.limits.call_bytes, 4 * (options.max_message or 0))
    app.limits = replace(
        app.limits,
        concurrent_calls=options.max_calls,
        call_bytes=call_bytes,
        question_seconds=options.question_seconds,
    )
    app.task_limits = TaskLimits(
        total=options.max_tasks,
        of_one_client=options.max_client_tasks,
        result_bytes=options.max_task_results,
        seconds=options.task_seconds,
    )


# From the start to the end


class Failed(Exception):
    """Raised if the program can't do its work now, although its settings are valid; the message is one line."""


class _CannotStart(Exception):
    """Raised if the program can't start with the operator's settings; the one-line message gives the reason."""


@contextmanager
def explain_startup_errors(subject: str = "") -> Iterator[None]:
    """For errors in the block that are caused by the operator's settings, end the program with one line, which begins
    with `subject` or the name of a file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            reason += "; choose another with --port, or any free one with --port 0"
        raise _CannotStart(f"{subject or error.filename or ''}: {reason}".removeprefix(": ")) from error
    except ValueError as error:
        raise _CannotStart(str(error)) from error


def run_program(program: str, main: Callable[[], Awaitable[None]], *, prefer_uvloop: bool) -> int:
    """Run `main` in an event loop, with `prefer_uvloop` in one of uvloop if that is installed. Return the exit code,
    which is 1 if `main` raised `Failed`. Ends the program if it can't start."""
    refusal: str | None = None
    code = 0
    has_ended = False

    async def run() -> None:
        nonlocal has_ended
        try:
            await main()
        finally:
            has_ended = True

    try:
        new_loop = partial(new_event_loop, lambda: has_ended, prefer_uvloop=prefer_uvloop)
        anyio.run(run, backend_options={"loop_factory": new_loop})
    except* (_CannotStart, DeclarationError) as group:
        refusal = str(first_error(group))
    except* Failed as group:
        sys.stderr.write(f"{program}: {plain(str(first_error(group)))}\n")
        code = 1
    except* KeyboardInterrupt:
        code = 130
    if refusal is not None:
        exit_with_error(program, refusal)
    return code


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """During the block, call `stop` at SIGTERM or SIGINT. A second signal ends the program at once, even if the event
    loop is blocked."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    # A second signal has its default action, which ends the program even if the event loop hangs. Workers ignore it,
    # and their parent ends them: a signal to the whole process group would reach a worker twice.
    second_action = signal.SIG_DFL if this_worker() is None else signal.SIG_IGN

    def on_signal(number: int, _frame: object) -> None:
        for signal_number in handlers:
            signal.signal(signal_number, second_action)
            handlers[signal_number] = second_action
        loop.call_soon_threadsafe(_end, number, stop)

    for number in handlers:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _end(number: int, stop: Callable[[], None]) -> None:
    log.info("%s: ending", signal.Signals(number).name)
    stop()


@contextmanager
def run_listener(options: Options, tasks: TaskGroup, drain_seconds: float) -> Iterator[anyio.Event]:
    """Prepare the end of a listener that runs in the block. Yields an event that is set when a signal ends the
    program; work that does not end in time is abandoned."""
    stop, worker = anyio.Event(), this_worker()
    with ExitStack() as stack:
        if worker is not None:
            drain_seconds += LINGER_SECONDS
            worker.siblings.drain_seconds = drain_seconds
            tasks.start_soon(worker.siblings.serve_parent, stop.set)
            stack.callback(worker.siblings.send_last_counts)
        tasks.start_soon(end_in_time, stop, 2 * drain_seconds)
        stack.enter_context(stop_on_signals(stop.set))
        stack.enter_context(explain_startup_errors(f"can't listen on {options.host} port {options.port}"))
        yield stop


async def end_in_time(ended: anyio.Event, seconds: float) -> None:
    """End the program some `seconds` after `ended` is set, even if work remains, since threads can't be cancelled."""
    await ended.wait()
    await anyio.sleep(seconds)
    log.error("unfinished work did not stop within %g s; exiting anyway", seconds)
    exit_at_once()


def exit_at_once() -> None:
    """End the program at once, and abandon all remaining work."""
    logging.shutdown()
    # `sys.exit` would wait for the threads that do not end.
    os._exit(1)


def explain_in_terminal(program: str) -> None:
    """Print that the program is waiting for a client, for a user who has started it by hand."""
    text = (
        "waiting for an MCP client on standard input; press Ctrl-D to stop, or use --transport http to serve a port"
    )
    print(f"{program}: {text}", file=sys.stderr, flush=True)  # noqa: T201


def announce(options: Options, text: str) -> None:
    """Print `text`, which contains the address of the listener, regardless of the log level, since people and
    programs wait for this line. A worker sends it to its parent, which prints it for all workers."""
    worker = this_worker()
    if worker is not None:
        worker.siblings.report_ready(text)
    elif options.log_format == "json":
        # Passed to the handlers directly, which ignores the log level.
        log.handle(log.makeRecord(log.name, logging.INFO, __file__, 0, text, (), None))
    else:
        print(text, file=sys.stderr, flush=True)  # noqa: T201
