"""Any server as a program: refused options, behaviour as a process, and traces of it."""

import errno
import gc
import json
import logging
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from pydantic import create_model

from servers.filesystem.server import app as filesystem
from shared import Implementation, Server
from shared.errors import DeclarationError
from shared.program.process import Failed, http_options, set_limits
from shared.program.run import Options, open_audit, run, run_app, variable_prefix
from shared.telemetry.audit_file import AuditFile
from tests.raw import (
    FILES,
    NO_TLS,
    ROOT,
    SLOW,
    Raw,
    WithHeaders,
    call,
    lines,
    listening,
    post,
    request,
    stateless,
    with_length,
)
from tests.shared.program.options_given import GIVEN, SECRETS

CALLED = "python -m tests.slow_server"


@pytest.fixture(autouse=True)
def same_process_afterwards() -> Iterator[None]:
    """Restores the process-wide state that `run` sets, as all tests share a process."""
    root, threshold = logging.getLogger(), gc.get_threshold()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    gc.set_threshold(*threshold)


# Refusals


class Refusals:
    """Refused starts of the filesystem server. Each must write one line without secrets."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd
        self.wrong: list[tuple[object, str]] = []

    def check(self, given: list[str], reason: str, begins: str = "filesystem: ") -> None:
        """Runs the server; adds its exit code and output to `wrong` unless they are as expected."""
        try:
            code: object = run(filesystem, given)
        except SystemExit as ended:
            code = ended.code
        output = self._capfd.readouterr()
        is_line = output.out == "" and output.err.startswith(begins) and output.err.count("\n") == 1
        if not (code == 2 and is_line and reason in output.err and "hunter2" not in output.err):
            self.wrong.append((code, output.err))


@pytest.fixture
def refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Refusals:
    """Refusals in a directory of their own."""
    monkeypatch.chdir(tmp_path)
    return Refusals(capfd)


BAD_FILES = [
    ("alow-write = true", "f.toml: there is no option 'alow-write'; did you mean 'allow-write'?"),
    ("max_secnds = 1", "f.toml: there is no option 'max_secnds'; did you mean 'max-seconds'?"),
    ("zzz = 1", "f.toml: there is no option 'zzz'\n"),
    ('"two\\nlines" = 1', "f.toml: there is no option 'two\\nlines'"),
    ("[filesystem]\nport = 1", "f.toml: there is no option 'filesystem'"),
    ("settings = 'other.toml'", "f.toml: there is no option 'settings'"),
    ("allow-write = true\nallow_write = false", "f.toml: allow_write is given twice"),
    ("port = 'x'", "f.toml: port: write a whole number"),
    ("max-seconds = 0", "f.toml: max-seconds: it must be greater than 0"),
    ("deny = '*.log'", "f.toml: deny: write a list, such as [A, B]"),
    ("deny = ['/etc/*']", "f.toml: deny: pattern /etc/*: "),
    ("roots = ['']", "f.toml: roots: a directory name is empty"),
    ("root = [':rw']", "f.toml: root: a directory name is empty"),
    ("roots = ['~no.such.user']", "f.toml: roots: unknown home directory: '~no.such.user'"),
    ("token = 'hunter2 hunter3'", "f.toml: token: a token must be one word"),
    ("port = ", "f.toml is not valid TOML: Invalid value (at "),
    ("port", "f.toml is not valid TOML: Expected '='"),
    ("port = 1 # \udcff", "f.toml is not UTF-8"),
    (None, "f.toml: No such file or directory"),
    ('roots = ["."]\n[principal."*"]\nroots = [".."]', "is not in any directory of the server"),
    ('roots = ["."]\n[principal."*"]\nroots = 5', 'principal."*".roots: '),
    ('roots = ["."]\n[principal."*"]\nroot = 5', "did you mean 'roots'?"),
]


def test_invalid_settings_files_are_refused_in_one_line(refusals: Refusals) -> None:
    file = Path("f.toml")
    for text, reason in BAD_FILES:
        if text is None:
            file.unlink()
        else:
            file.write_bytes(text.encode(errors="surrogateescape"))
        given = ["--settings", "f.toml", *([] if "root" in (text or "") else ["."])]
        refusals.check(given, reason, "filesystem: f.toml")
    assert not refusals.wrong


REFUSED = [
    (["--no-such"], {}, "unrecognized arguments: --no-such; see --help"),
    (["--por", "1"], {}, "unrecognized arguments: --por; did you mean --port?"),
    (["--alow-write=yes"], {}, "unrecognized arguments: --alow-write=yes; did you mean --allow-write?"),
    (["--write"], {}, "unrecognized arguments: --write; did you mean --allow-write?"),
    (["--port"], {}, "--port: expected one argument"),
    (["--port", "x"], {}, "--port: write a whole number"),
    (["--port", "65536"], {}, "--port: "),
    (["--port", "-1"], {}, "--port: "),
    ([], {"MCP_PORT": "x"}, "MCP_PORT: write a whole number"),
    (["--transport", "pigeon"], {}, "--transport: invalid choice: 'pigeon'"),
    ([], {"MCP_TRANSPORT": "pigeon"}, "MCP_TRANSPORT: it must be 'stdio' or 'http'"),
    (["--path", "mcp"], {}, "--path: "),
    (["--max-seconds", "nan"], {}, "--max-seconds: "),
    (["--max-message", "0"], {}, "--max-message: "),
    ([], {"MCP_NO_AUTH": "perhaps"}, "MCP_NO_AUTH: "),
    (["--no-no-auth"], {}, "unrecognized arguments"),
    (["no/such"], {}, "DIR: no/such is not a directory"),
    (["file"], {}, "DIR: file is not a directory"),
    (["two\nlines"], {}, "DIR: two; lines is not a directory"),
    ([""], {}, "DIR: a directory name is empty"),
    ([], {"MCP_FILESYSTEM_ROOTS": "no/such"}, "MCP_FILESYSTEM_ROOTS: no/such is not a directory"),
    (["--root", "root:wr"], {}, "--root: root:wr is not a directory; write DIR, DIR:ro or DIR:rw"),
    (["--root", ":rw"], {}, "--root: a directory name is empty"),
    (["--root", "root:rw", "--root", "root:ro"], {}, "root is listed as both read-only and writable"),
    (["--deny", "/etc/*"], {}, "--deny: pattern /etc/*: a pattern must be relative to the starting directory"),
    (["--allow", "{a,b}" * 9], {}, "--allow: pattern"),
    (["--disable-tool", "raed_file"], {}, "--disable-tool: there is no tool 'raed_file'"),
    ([], {"MCP_FILESYSTEM_DISABLE_TOOL": "read_file,x"}, "--disable-tool: there is no tool 'x'"),
    (None, {}, "specify at least one DIR"),
    (["--token-file", "no/such"], {}, "--token-file: no/such: No such file or directory"),
    (["--token-file", "."], {}, "--token-file: .: Is a directory"),
    (["--token-file", "empty"], {}, "--token-file: empty is empty"),
    (["--token-file", "words"], {}, "--token-file: words: a token must be one word"),
    (["--token-file", "bytes"], {}, "--token-file: bytes: a token must be one word"),
    ([], {"MCP_TOKEN": "hunter2 hunter3"}, "MCP_TOKEN: a token must be one word"),
    (
        ["--transport", "http", "--host", "0.0.0.0"],
        {},
        "set a token with --token-file or MCP_TOKEN, several with --tokens-file",
    ),
    (
        ["--transport", "http", "--host", ""],
        {},
        "set a token with --token-file or MCP_TOKEN, several with --tokens-file",
    ),
    (["--settings", "."], {}, ".: Is a directory"),
    (["--settings", ""], {}, ".: Is a directory"),
    (["--trace", "no/such/file"], {}, "--trace: no/such/file: No such file or directory"),
    (["--trace", "."], {}, "--trace: .: Is a directory"),
    (["--trace", os.devnull], {}, "--trace: /dev/null is not a regular file"),
    (["--audit", "no/such/file"], {}, "--audit: no/such/file: No such file or directory"),
    (["--audit", "."], {}, "--audit: .: Is a directory"),
    (["--audit", "pipe"], {}, "--audit: pipe is not a regular file"),
    *((["--otlp", url], {}, "--otlp: ") for url in ("localhost:4318", "grpc://a:4317", "http://", "http://a/?b=c")),
    (["--workers", "2"], {}, "--workers: over stdio, one process serves one client"),
]


def test_invalid_options_are_refused_in_one_line(refusals: Refusals, tmp_path: Path) -> None:
    for name, content in {"file": b"", "empty": b" \n", "words": b"hunter2 hunter3", "bytes": b"hunter2\xff"}.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "root").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for arguments, environment, reason in REFUSED:
        # A case without a directory gets one, unless it is about directories.
        is_about_roots = arguments is None or "MCP_FILESYSTEM_ROOTS" in environment or "DIR: " in reason
        given = [*(arguments or []), *([] if is_about_roots else ["root"])]
        if given[:1] == ["--port"] and len(given) == 2:
            given.reverse()
        with pytest.MonkeyPatch.context() as patched:
            for name, value in environment.items():
                patched.setenv(name, value)
            refusals.check(given, reason)
    assert not refusals.wrong


def test_the_environment_names_the_settings_file(
    refusals: Refusals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "named.toml").write_text("port = 'x'")
    monkeypatch.setenv("MCP_SETTINGS", "named.toml")
    refusals.check(["."], "named.toml: port: write a whole number")
    monkeypatch.setenv("MCP_SETTINGS", "")
    refusals.check([], "specify at least one DIR")
    assert not refusals.wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (FILES, "python -m servers.filesystem: specify at least one DIR that may be read\n"),
        ([*SLOW, "--broken"], f"{CALLED}: /there/is/none: No such file or directory\n"),
        ([*SLOW, "--transport", "http", "--broken"], f"{CALLED}: /there/is/none: No such file or directory\n"),
        ([*SLOW, "--trace", "/dev/stdout"], f"{CALLED}: --trace: /dev/stdout is not a regular file\n"),
        (
            [*SLOW, "--transport", "http", "--host", "no.such.host.invalid", "--no-auth"],
            f"{CALLED}: can't listen on no.such.host.invalid port 8000: ",
        ),
        (
            [*SLOW, "--transport", "http", "--host", "192.0.2.1", "--no-auth"],
            f"{CALLED}: can't listen on 192.0.2.1 port 8000: Cannot assign requested address\n",
        ),
    ],
)
def test_a_process_that_cannot_start_reports_the_reason(command: list[str], reason: str) -> None:
    with Raw(command) as server:
        assert server.rest() == []
        assert server.wait() == 2
        output = server.stderr()
        assert output.startswith(reason)
        assert output.count("\n") == 1


def test_an_invalid_declaration_is_reported_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    app = Server[None](Implementation(name="door", version="1"))

    @app.tool(task="required")
    def work() -> str:
        """Work."""
        return ""

    with pytest.raises(SystemExit, match="2"):
        run_app("door", app, Options(transport="http", port=0))
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("door: ")
    assert line.endswith("tool 'work' may run as a task: give the server the extension `tasks()`")


@pytest.mark.parametrize(
    ("name", "kind"), [("host", str), ("help", str), ("token", str), ("auth", bool), ("version", bool)]
)
def test_a_settings_field_with_the_name_of_a_common_option_is_refused(name: str, kind: Any) -> None:
    fields: Any = {name: (kind, kind())}
    app = Server[None](Implementation(name="notes", version="1"), settings=create_model("Settings", **fields))
    with pytest.raises(
        DeclarationError,
        match=rf"test_run\.py:\d+: Settings\.{name}: every server has an option with this name; .* own_{name}",
    ):
        run(app, ["--help"])


@pytest.mark.parametrize("name", ["My Server 2", "my-server.2", "MY_SERVER_2"])
def test_environment_variables_of_a_server_have_valid_names(name: str) -> None:
    assert variable_prefix(Server[None](Implementation(name=name, version="1"))).upper() == "MCP_MY_SERVER_2"


def test_a_failed_program_reports_the_reason_and_exits_with_1(capfd: pytest.CaptureFixture[str]) -> None:
    async def fail() -> None:
        raise Failed("nobody is there\x1b[1m")

    assert run_app("door", Server[None](Implementation(name="door", version="1")), Options(), wait_ready=fail) == 1
    assert capfd.readouterr() == ("", "door: nobody is there\N{REPLACEMENT CHARACTER}[1m\n")


WAITING = """
import anyio, signal
from shared import Implementation, Server
from shared.program.run import Options, run_app

async def wait():
    signal.raise_signal(signal.SIGTERM)
    await anyio.sleep_forever()

app = Server[None](Implementation(name="door", version="1"))
raise SystemExit(run_app("door", app, Options(), wait_ready=wait))
"""


@pytest.mark.slow
def test_a_signal_ends_a_program_during_startup() -> None:
    with Raw([sys.executable, "-c", WAITING]) as server:
        assert server.wait() == 0
        assert server.stderr() == ""


@pytest.mark.slow
def test_errors_of_a_console_script_begin_with_its_name() -> None:
    main = "from servers.filesystem.__main__ import main; main()"
    start = f"import sys; sys.argv[0] = '/a/bin/mcp-bundle-filesystem'; {main}"
    with Raw([sys.executable, "-c", start]) as server:
        assert server.wait() == 2
        assert server.stderr() == "mcp-bundle-filesystem: specify at least one DIR that may be read\n"


@pytest.mark.slow
def test_a_program_started_in_a_terminal_explains_that_it_waits_for_a_client() -> None:
    ours, terminal = os.openpty()
    with os.fdopen(terminal, "rb") as stdin, Raw(SLOW, stdin=stdin) as server:
        os.write(ours, b"\x04")
        assert server.wait() == 0
        assert server.stderr().startswith(f"{CALLED}: waiting for an MCP client")
    os.close(ours)


@pytest.mark.slow
def test_a_trace_to_standard_output_is_refused(tmp_path: Path) -> None:
    with (
        (tmp_path / "out").open("wb") as output,
        Raw([*SLOW, "--trace", str(tmp_path / "out")], stdout=output) as server,
    ):
        assert server.wait() == 2
        assert server.stderr() == f"{CALLED}: --trace: {tmp_path}/out is used for the protocol\n"
    assert (tmp_path / "out").read_bytes() == b""


@pytest.mark.slow
def test_a_busy_port_is_refused_with_advice() -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        host, port = busy.getsockname()[:2]
        with Raw([*SLOW, "--transport", "http", "--host", host, "--port", str(port)]) as server:
            assert server.wait() == 2
            reason = f"{CALLED}: can't listen on {host} port {port}: Address already in use"
            assert server.stderr() == f"{reason}; choose another with --port, or any free one with --port 0\n"


@pytest.mark.slow
def test_a_missing_extra_is_reported(tmp_path: Path) -> None:
    # An interpreter without site-packages but the core's dependencies.
    packages = Path(anyio.__file__).parents[1]
    needed = {
        "anyio",
        "idna",
        "pydantic",
        "pydantic_core",
        "annotated_types",
        "typing_inspection",
        "typing_extensions.py",
    }
    for name in needed:
        (tmp_path / name).symlink_to(packages / name)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, "-S", "-m", "tests.slow_server"]
    with Raw([*command, "--transport", "http"], env=env) as server:
        assert server.wait() == 2
        assert server.stderr() == (
            # Without site-packages there is no pip.
            f"{CALLED}: --transport http: this needs the extra 'http': "
            f"uv pip install --python {sys.executable} -e '{ROOT}[http]'\n"
        )
    with Raw(command, env=env) as server:
        server.open().close_stdin()
        assert server.wait() == 0


@pytest.mark.slow
def test_a_process_reports_a_secret_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("token = 'hunter2'")
    path.chmod(0o644)
    with Raw(SLOW, env={**os.environ, "MCP_SETTINGS": str(path)}) as server:
        server.open().close_stdin()
        assert server.wait() == 0
        assert f"{path}: token: other users can read this secret" in server.stderr()
        assert "hunter2" not in server.stderr()


# Version, help and limits


def test_version_and_help_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    for argument in ("--version", "--help"):
        with pytest.raises(SystemExit) as ended:
            run(filesystem, [argument])
        assert ended.value.code == 0
    output = capfd.readouterr()
    assert output.err == ""
    assert output.out.startswith(f"filesystem {filesystem.implementation.version}\n")
    for name in Options.model_fields:
        assert f"MCP_{name.upper()}" in output.out or name in SECRETS
    assert "MCP_FILESYSTEM_ROOTS" in output.out


REACHED = {
    "max_result": ("budget.page_bytes", "budget.result_bytes"),
    "max_text": ("budget.page_bytes", "budget.text_bytes"),
    "max_seconds": ("budget.seconds",),
    "max_entries": ("budget.entries",),
    "max_calls": ("limits.concurrent_calls",),
    "question_seconds": ("limits.question_seconds",),
    "max_tasks": ("task_limits.total",),
    "max_client_tasks": ("task_limits.of_one_client",),
    "max_task_results": ("task_limits.result_bytes",),
    "task_seconds": ("task_limits.seconds",),
    **{name: (f"http.{name}",) for name in ("host", "port", "path", "public_url", "cards", "access_log")},
    "allowed_host": ("http.allowed_hosts",),
    "allowed_origin": ("http.allowed_origins",),
    "trusted_proxy": ("http.trusted_proxies",),
    "dialects": ("http.limits.dialects",),
    "max_message": ("http.limits.body_bytes",),
    "max_sessions": ("http.limits.sessions.sessions",),
    "idle_seconds": ("http.limits.sessions.idle_seconds",),
    "max_rate": ("http.limits.clients.per_second",),
    "max_burst": ("http.limits.clients.burst",),
    "max_client_calls": ("http.limits.clients.calls",),
    "max_client_sessions": ("http.limits.clients.sessions",),
    "max_client_bytes": ("http.limits.clients.day_bytes",),
}
"""The values of a server or its listener that an option sets; no other option sets any, except those for tokens."""


def values_below(part: Any, path: str) -> dict[str, Any]:
    """Returns the values of nested records by their paths."""
    if not is_dataclass(part):
        return {path: part}
    inner = [values_below(getattr(part, field.name), f"{path}.{field.name}") for field in fields(part)]
    return {name: value for values in inner for name, value in values.items() if name != "http.authenticator"}


def values_with(**options: Any) -> dict[str, Any]:
    """Returns the values of a server and its listener with these options."""
    app, read = Server[Any](Implementation(name="limited", version="1")), Options(**options)
    set_limits(app, read)
    parts = {"budget": app.budget, "limits": app.limits, "task_limits": app.task_limits}
    parts["http"] = http_options(read, None)
    return {name: value for path, part in parts.items() for name, value in values_below(part, path).items()}


def test_each_option_sets_its_values_and_no_others() -> None:
    defaults, reached = values_with(), {}
    for name, given in GIVEN.items():
        if name.startswith("auth_") or name == "tokens_file":
            continue
        values = {
            path: value for path, value in values_with(**{name: given.value}).items() if value != defaults[path]
        }
        if values:
            reached[name] = tuple(sorted(values))
            value = tuple(given.value) if isinstance(given.value, list) else given.value
            assert {*values.values()} == {{"off": False, ("10.0.0.1",): ("10.0.0.1/32",)}.get(value, value)}
    assert reached == REACHED
    assert defaults["http.limits.body_bytes"] == 4 * 1024**2
    # Several of the largest messages at once.
    assert values_with(max_message=1_000_000_000)["limits.call_bytes"] >= 4_000_000_000


@pytest.mark.parametrize("is_set", [False, True])
def test_audit_options_apply_to_the_audit_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_set: bool) -> None:
    path = tmp_path / "audit"
    given = {"audit_arguments": True, "audit_required": True, "audit_bytes": 70_000, "audit_files": 2}
    audit = open_audit(Options(audit=path, **(given if is_set else {})))
    for _ in range(4):
        audit.write(f"{'x' * 50_000}\n")
    assert {entry.name for entry in tmp_path.iterdir()} - {"audit.lock"} == {"audit", *(["audit.1"] * is_set)}
    assert audit.arguments is is_set

    def refuse(_file: AuditFile, _line: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(AuditFile, "write", refuse)
    audit.write("lost\n")
    assert audit.is_blocked is is_set
    audit.close()


# The process. Hostile clients are in `tests/checks/faults`.


def audit_outcomes(path: Path) -> list[tuple[Any, ...]]:
    """Returns the server, tool and outcome of each line of an audit log."""
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    return [(one["server"], one.get("tool"), one["outcome"]) for one in entries if one.get("tool") or "status" in one]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no event there shows that a pipe has no reader")
def test_calls_of_a_disconnected_client_are_cancelled() -> None:
    with Raw([*SLOW, "--drain", "3600", "--max-seconds", "3600"]).open() as server:
        server.send(call(1, "hold"))
        server.begun()
        server.close_stdin()
        server.process.stdout.close()  # type: ignore[union-attr]
        assert server.wait() == 0


def test_a_stdio_process_survives_client_errors_and_ends_at_a_signal(tmp_path: Path) -> None:
    trace, audit = tmp_path / "trace", tmp_path / "audit"
    more = ["--trace", str(trace), "--audit", str(audit), "--max-result", "6000", "--log-format", "json"]
    with Raw([*SLOW, *more]).open() as server:
        server.send_bytes(b"nonsense hunter2\n")
        assert server.receive()["error"]["code"] == -32700
        server.send(call(1, "hold"))
        server.begun()
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        server.send(cancelled, call(1, "stray"))
        assert server.answer(1)["result"]["content"][0]["text"] == "done"
        server.send(call(2, "large", size=100_000))
        assert server.answer(2)["result"]["isError"]
        server.send(call("bad", "fail"))
        assert server.answer("bad")["error"] == {"code": -32603, "message": "internal error"}
        server.send(call(3, "hold", seconds=0.1))
        server.begun()
        server.process.terminate()
        assert server.answer(3)["result"]["content"][0]["text"] == "held"
        assert server.rest() == []
        assert server.wait() == 0
        output = server.stderr()
    assert all(text in output for text in ("stray: print", "stray: fd 1", "stray: shell"))
    logged = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert any("a secret detail" in line.get("exception", "") for line in logged)
    assert logged[-1]["message"] == "closed in order"
    outcomes = [
        ("slow", "hold", "cancelled"),
        ("slow", "stray", "ok"),
        ("slow", "large", "tool_error"),
        ("slow", "fail", "error"),
        ("slow", "hold", "ok"),
    ]
    assert audit_outcomes(audit) == outcomes
    assert [trace.stat().st_mode & 0o077, audit.stat().st_mode & 0o077] == [0, 0]
    traced = [next(kind for kind in json.loads(line) if kind != "time") for line in trace.read_text().splitlines()]
    assert {*traced} == {"received", "refused", "sent"}
    assert "hunter2" not in trace.read_text()


def test_a_process_answers_pending_calls_at_end_of_input_and_exits() -> None:
    with Raw(SLOW).open() as server:
        server.send(call("slow", "hold", seconds=0.1))
        server.send_bytes(lines(call("last", "echo", text="no newline")).removesuffix(b"\n"))
        server.close_stdin()
        answers = {one["id"]: one["result"]["content"][0]["text"] for one in server.rest() if "result" in one}
        assert answers == {"slow": "held", "last": "no newline"}
        assert server.wait() == 0


def test_a_process_accepts_dialects_unless_disabled() -> None:
    tools = request(1, "mcp/listTools")
    with WithHeaders(SLOW) as server:
        server.send(tools)
        assert "result" in server.receive()
    with Raw([*SLOW, "--dialects", "off"]) as server:
        server.send(tools)
        assert 'send "initialize" first' in server.receive()["error"]["message"]
        server.open().send(tools)
        assert server.receive()["error"]["code"] == -32601
        server.send_bytes(with_length(b"{}") + b"\n")
        assert server.receive()["error"]["code"] == -32700


def test_an_http_process_reads_its_token_once_and_never_logs_it(tmp_path: Path) -> None:
    file, trace, audit = tmp_path / "token", tmp_path / "trace", tmp_path / "audit"
    file.write_text("hunter2\n")
    more = ["--trace", str(trace), "--audit", str(audit), "--log-level", "debug", "--path", "/here"]
    more += ["--max-message", "2000", "--token-file", str(file)]
    with Raw([*SLOW, "--transport", "http", "--port", "0", *more]) as server:
        url = listening(server)
        assert url.endswith("/here")
        file.write_text("another")
        file.unlink()
        message, bearer = stateless(call(1, "echo", text="x")), {"authorization": "Bearer hunter2"}
        for headers, status in (({}, 401), ({"authorization": "Bearer another"}, 401), (bearer, 200)):
            assert post(url, message, **headers).status_code == status
        assert post(url, stateless(call(1, "echo", text="x" * 3_000)), **bearer).status_code == 413
        assert httpx.get(f"{url.removesuffix('/here')}/healthz", trust_env=False, verify=NO_TLS).status_code == 200
        server.process.terminate()
        assert server.wait() == 0
        assert "hunter2" not in server.stderr() + trace.read_text() + audit.read_text()
    assert audit_outcomes(audit)[:2] == [("slow", None, "refused"), ("slow", "echo", "ok")]
