"""Any server as a program: its options, what it refuses, and what it leaves behind."""

import gc
import json
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel, Field

from servers.filesystem.server import app as filesystem
from servers.filesystem.settings import Settings
from shared import Implementation, Server
from shared.contracts import TaskLimits
from shared.program import run as cli
from shared.program.options import read_options
from shared.program.process import Failed, set_limits
from shared.program.run import Options, run, run_app
from shared.program.settings_file import read_settings_file
from tests.checks.faults.raw import FILES, ROOT, SLOW, Raw

# An option: its words on the command line and their value, its variable's text and another value.
GIVEN: dict[str, tuple[list[str], Any, str, Any]] = {
    "settings": (["--settings", "/a"], Path("/a"), "/b", Path("/b")),
    "transport": (["--transport", "http"], "http", "stdio", "stdio"),
    "host": (["--host", "::1"], "::1", "10.0.0.1", "10.0.0.1"),
    "port": (["--port", "1"], 1, "65535", 65_535),
    "path": (["--path", "/a"], "/a", "/b", "/b"),
    "allowed_host": (["--allowed-host", "a:1", "--allowed-host", "b"], ["a:1", "b"], "c:80, d", ["c:80", "d"]),
    "allowed_origin": (
        ["--allowed-origin", "https://a:1"],
        ["https://a:1"],
        "http://b,http://c:8",
        ["http://b", "http://c:8"],
    ),
    "token_file": (["--token-file", "/a"], Path("/a"), "/b", Path("/b")),
    "no_auth": (["--no-auth"], True, "no", False),
    "cards": (["--cards"], True, "no", False),
    "dialects": (["--dialects", "off"], "off", "on", "on"),
    "log_level": (["--log-level", "debug"], "debug", "error", "error"),
    "log_format": (["--log-format", "json"], "json", "text", "text"),
    "trace": (["--trace", "a"], Path("a"), "b", Path("b")),
    "max_message": (["--max-message", "5000"], 5_000, "6000", 6_000),
    "max_result": (["--max-result", "5000"], 5_000, "6000", 6_000),
    "max_seconds": (["--max-seconds", "1.5"], 1.5, "2", 2.0),
    "max_entries": (["--max-entries", "5"], 5, "6", 6),
    "max_calls": (["--max-calls", "5"], 5, "6", 6),
    "max_tasks": (["--max-tasks", "5"], 5, "6", 6),
    "max_client_tasks": (["--max-client-tasks", "5"], 5, "6", 6),
    "max_task_results": (["--max-task-results", "5000"], 5_000, "6000", 6_000),
    "task_seconds": (["--task-seconds", "1.5"], 1.5, "2", 2.0),
    "max_sessions": (["--max-sessions", "5"], 5, "6", 6),
    "idle_seconds": (["--idle-seconds", "1.5"], 1.5, "2", 2.0),
    "tokens_file": (["--tokens-file", "/a"], Path("/a"), "/b", Path("/b")),
    "auth_issuer": (
        ["--auth-issuer", "https://a", "--auth-issuer", "https://b"],
        ["https://a", "https://b"],
        "https://c,https://d",
        ["https://c", "https://d"],
    ),
    "trusted_proxy": (["--trusted-proxy", "10.0.0.1"], ["10.0.0.1"], "10.0.0.0/8,::1", ["10.0.0.0/8", "::1"]),
    "public_url": (["--public-url", "https://a"], "https://a", "https://b", "https://b"),
    "auth_algorithm": (["--auth-algorithm", "ES256"], ["ES256"], "RS256", ["RS256"]),
    "auth_skew": (["--auth-skew", "1.5"], 1.5, "2", 2.0),
    "auth_principal_claim": (["--auth-principal-claim", "email"], "email", "name", "name"),
    "auth_dpop": (["--auth-dpop", "nonce"], "nonce", "required", "required"),
    "auth_client_id": (["--auth-client-id", "a"], "a", "b", "b"),
    "auth_client_secret_file": (["--auth-client-secret-file", "/a"], Path("/a"), "/b", Path("/b")),
    "max_rate": (["--max-rate", "1.5"], 1.5, "2", 2.0),
    "max_burst": (["--max-burst", "1.5"], 1.5, "2", 2.0),
    "max_client_calls": (["--max-client-calls", "5"], 5, "6", 6),
    "max_client_sessions": (["--max-client-sessions", "5"], 5, "6", 6),
    "max_client_bytes": (["--max-client-bytes", "5000"], 5_000, "6000", 6_000),
    "audit": (["--audit", "a"], Path("a"), "b", Path("b")),
    "audit_arguments": (["--audit-arguments"], True, "no", False),
    "audit_required": (["--audit-required"], True, "no", False),
    "audit_bytes": (["--audit-bytes", "70000"], 70_000, "80000", 80_000),
    "audit_files": (["--audit-files", "5"], 5, "6", 6),
    "store": (["--store", "redis://a"], "redis://a", "unix:///b", "unix:///b"),
    "store_password_file": (["--store-password-file", "/a"], Path("/a"), "/b", Path("/b")),
    "store_prefix": (["--store-prefix", "a:"], "a:", "b:", "b:"),
    "store_lease": (["--store-lease", "1.5"], 1.5, "2", 2.0),
    "workers": (["--workers", "5"], 5, "6", 6),
    "otlp": (["--otlp", "http://a:4318"], "http://a:4318", "https://b/otlp", "https://b/otlp"),
    "access_log": (["--access-log"], True, "no", False),
}
ONLY_VARIABLES = {"token", "auth_client_secret"}
CALLED = "python -m tests.checks.faults.slow_server"


@pytest.fixture(autouse=True)
def same_process_afterwards() -> Iterator[None]:
    """Takes back what `run` sets for the whole process, which here is that of all tests."""
    root, threshold = logging.getLogger(), gc.get_threshold()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    gc.set_threshold(*threshold)


def options(arguments: list[str], environment: dict[str, str]) -> Options:
    return read_options(Options, cli._parser(filesystem, "files").read(arguments), environment, "MCP")


def test_the_table_has_every_option() -> None:
    assert GIVEN.keys() | ONLY_VARIABLES == set(Options.model_fields)


@pytest.mark.parametrize("name", GIVEN)
def test_an_option_comes_from_the_command_line_or_the_environment(name: str) -> None:
    words, value, text, other = GIVEN[name]
    variable = {f"MCP_{name.upper()}": text}
    assert getattr(options([], variable), name) == other
    assert getattr(options(words, {}), name) == value
    assert getattr(options(words, variable), name) == value
    assert getattr(options([], {f"MCP_{name.upper()}": ""}), name) == Options.model_fields[name].default


def test_no_command_line_sets_a_secret(capsys: pytest.CaptureFixture[str]) -> None:
    assert options([], {"MCP_TOKEN": "hunter2"}).token == "hunter2"
    with pytest.raises(SystemExit, match="2"):
        options(["--token", "hunter2"], {})
    assert "hunter2" not in cli._parser(filesystem, "files").format_help()


def test_the_help_says_what_a_value_is() -> None:
    shown = cli._parser(filesystem, "files").format_help()
    assert all(one in shown for one in ("--root DIR:MODE ", "--trace FILE ", "--port VALUE ", "[DIR ...]"))


@pytest.mark.parametrize(
    ("arguments", "environment", "roots", "writes"),
    [
        (["a", "b"], {}, ["a", "b"], False),
        (["--allow-write", "a", "--log-level", "info", "b"], {}, ["a", "b"], True),
        (["a", "--no-allow-write"], {"MCP_FILESYSTEM_ALLOW_WRITE": "yes"}, ["a"], False),
        (["a"], {"MCP_FILESYSTEM_ROOTS": "b", "MCP_FILESYSTEM_ALLOW_WRITE": "1"}, ["a"], True),
        ([], {"MCP_FILESYSTEM_ROOTS": os.pathsep.join(["a", "", "b"])}, ["a", "b"], False),
        (["--", "-c"], {}, ["-c"], False),
    ],
)
def test_the_settings_of_a_server(
    arguments: list[str],
    environment: dict[str, str],
    roots: list[str],
    writes: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "-c"):
        (tmp_path / name).mkdir()
    given = cli._parser(filesystem, "files").read(arguments)
    settings = read_options(Settings, given, environment, "MCP_FILESYSTEM")
    assert ([str(root) for root in settings.roots], settings.allow_write) == (roots, writes)


# The file of settings


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def of_file(text: str, arguments: list[str], environment: dict[str, str], folder: Path) -> tuple[Options, Settings]:
    """The options of the filesystem server, with a file of settings that has this text."""
    path = write(folder / "settings.toml", text)
    given = cli._parser(filesystem, "files").read(["--settings", str(path), *arguments])
    file, _ = cli._settings_file(filesystem, given)
    return (
        read_options(Options, given, environment, "MCP", file),
        read_options(Settings, given, environment, "MCP_FILESYSTEM", file),
    )


@pytest.mark.parametrize("name", sorted(GIVEN.keys() - {"settings"}))
@pytest.mark.parametrize("written", [str, lambda name: name.replace("_", "-")], ids=["underscore", "hyphen"])
def test_an_option_comes_from_the_file(name: str, written: Callable[[str], str], tmp_path: Path) -> None:
    words, value, text, other = GIVEN[name]
    shown = json.dumps(str(other) if isinstance(other, Path) else other)
    in_file = tmp_path / other if isinstance(other, Path) else other
    file = f"roots = ['.']\n{written(name)} = {shown}"
    assert getattr(of_file(file, [], {}, tmp_path)[0], name) == in_file
    assert getattr(of_file(file, words, {}, tmp_path)[0], name) == value
    file = f"roots = ['.']\n{written(name)} = {json.dumps(str(value) if isinstance(value, Path) else value)}"
    assert getattr(of_file(file, [], {f"MCP_{name.upper()}": text}, tmp_path)[0], name) == other


def test_the_settings_of_a_server_come_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, folder = tmp_path / "home", tmp_path / "folder"
    for path in (home, folder / "a", folder / "b"):
        path.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    text = 'roots = ["a", "~", "/"]\nroot = ["b:rw"]\nallow-write = true\ndeny = ["*.log"]\nmax_read = 5_000'
    settings = of_file(text, [], {}, folder)[1]
    assert settings.roots == [folder / "a", home, Path("/")]
    assert settings.directories[-1] == (folder / "b", True)
    assert (settings.allow_write, settings.deny, settings.max_read) == (True, ["*.log"], 5_000)


class Named(BaseModel):
    """Settings whose paths follow names."""

    file: list[str] = Field([], json_schema_extra={"paths_after": "="})


def test_a_path_may_follow_a_name(tmp_path: Path) -> None:
    path = write(tmp_path / "settings.toml", "file = ['a=b', 'a=b=c:rw', 'a=/b', 'a=', 'a=:memory:', 'a']")
    options, _ = read_settings_file(path, Named.model_fields)
    at = str(tmp_path)
    assert options["file"].value == [f"a={at}/b", f"a={at}/b=c:rw", "a=/b", "a=", "a=:memory:", f"{at}/a"]


def test_a_list_of_the_command_line_takes_the_place_of_that_of_the_file(tmp_path: Path) -> None:
    settings = of_file('roots = ["."]\ndeny = ["a", "b"]', ["--deny", "c"], {}, tmp_path)[1]
    assert settings.deny == ["c"]


def test_a_secret_comes_from_the_file_too(tmp_path: Path) -> None:
    assert of_file("roots = ['.']\ntoken = 'hunter2'", [], {}, tmp_path)[0].token == "hunter2"
    assert of_file("roots = ['.']\ntoken = 'hunter2'", [], {"MCP_TOKEN": "hunter3"}, tmp_path)[0].token == "hunter3"


@pytest.mark.skipif(os.name != "posix", reason="these permissions are those of POSIX")
@pytest.mark.parametrize(("mode", "exposed"), [(0o600, False), (0o620, False), (0o640, True), (0o604, True)])
def test_a_secret_that_others_can_read_is_told(
    mode: int, exposed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "settings.toml", "token = 'hunter2'\nport = 1")
    path.chmod(mode)
    monkeypatch.setenv("MCP_SETTINGS", str(path))
    _, told = cli._settings_file(filesystem, cli._parser(filesystem, "files").read([]))
    assert told == (f"{path}: token" if exposed else None)


@pytest.mark.slow
def test_a_process_tells_of_a_secret_that_others_can_read(tmp_path: Path) -> None:
    path = write(tmp_path / "settings.toml", "token = 'hunter2'")
    path.chmod(0o644)
    with Raw(SLOW, env={**os.environ, "MCP_SETTINGS": str(path)}) as server:
        server.open().close_stdin()
        assert server.wait() == 0
        assert f"{path}: token: others can read this secret" in server.stderr()
        assert "hunter2" not in server.stderr()


def test_the_file_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_SETTINGS", str(write(tmp_path / "settings.toml", "port = 5")))
    file, _ = cli._settings_file(filesystem, cli._parser(filesystem, "files").read([]))
    assert file["port"].value == 5
    monkeypatch.setenv("MCP_SETTINGS", "")
    assert cli._settings_file(filesystem, cli._parser(filesystem, "files").read([])) == ({}, None)


BAD_FILES = [
    ("alow-write = true", "f.toml: there is no option 'alow-write'; did you mean 'allow-write'?"),
    ("max_secnds = 1", "f.toml: there is no option 'max_secnds'; did you mean 'max-seconds'?"),
    ("zzz = 1", "f.toml: there is no option 'zzz'\n"),
    ('"two\\nlines" = 1', "f.toml: there is no option 'two\\nlines'"),
    ("[filesystem]\nport = 1", "f.toml: there is no option 'filesystem'"),
    ("settings = 'other.toml'", "f.toml: there is no option 'settings'"),
    ("allow-write = true\nallow_write = false", "f.toml: allow_write is given twice"),
    ("port = 'x'", "f.toml: port: Input should be a valid integer"),
    ("max-seconds = 0", "f.toml: max-seconds: Input should be greater than 0"),
    ("deny = '*.log'", "f.toml: deny: Input should be a valid list"),
    ("deny = ['/etc/*']", "f.toml: deny: pattern /etc/*: "),
    ("roots = ['no/such']", "/no/such is not a directory"),
    ("roots = ['']", "f.toml: roots: the name of a directory is empty"),
    ("root = [':rw']", "f.toml: root: the name of a directory is empty"),
    ("roots = ['~no.such.user']", "f.toml: roots: nobody has the home directory of '~no.such.user'"),
    ("token = 'hunter2 hunter3'", "f.toml: token: a token is one word"),
    ("port = ", "f.toml: is not valid TOML: Invalid value (at "),
    ("port", "f.toml: is not valid TOML: Expected '='"),
    ("port = 1 # \udcff", "f.toml: is not UTF-8"),
    (None, "f.toml: No such file or directory"),
]


@pytest.mark.parametrize(("text", "reason"), BAD_FILES)
def test_what_is_refused_of_a_file_in_one_line(
    text: str | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("f.toml").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(SystemExit) as ended:
        run(filesystem, ["--settings", "f.toml", *([] if "root" in (text or "") else ["."])])
    said = capfd.readouterr()
    assert ended.value.code == 2
    assert said.err.startswith("filesystem: f.toml: ")
    assert reason in said.err
    assert said.err.count("\n") == 1
    assert "hunter2" not in said.err


# What is refused


REFUSED = [
    (["--no-such"], {}, "unrecognized arguments: --no-such; see --help"),
    (["--por", "1"], {}, "unrecognized arguments: --por; did you mean --port?"),
    (["--alow-write=yes"], {}, "unrecognized arguments: --alow-write=yes; did you mean --allow-write?"),
    (["--port"], {}, "--port: expected one argument"),
    (["--port", "x"], {}, "--port: Input should be a valid integer"),
    (["--port", "65536"], {}, "--port: "),
    (["--port", "-1"], {}, "--port: "),
    ([], {"MCP_PORT": "x"}, "MCP_PORT: Input should be a valid integer"),
    (["--transport", "pigeon"], {}, "--transport: invalid choice: 'pigeon'"),
    ([], {"MCP_TRANSPORT": "pigeon"}, "MCP_TRANSPORT: Input should be 'stdio' or 'http'"),
    (["--path", "mcp"], {}, "--path: "),
    (["--max-seconds", "nan"], {}, "--max-seconds: "),
    (["--max-message", "0"], {}, "--max-message: "),
    ([], {"MCP_NO_AUTH": "perhaps"}, "MCP_NO_AUTH: "),
    (["--no-no-auth"], {}, "unrecognized arguments"),
    (["no/such"], {}, "DIR: no/such is not a directory"),
    (["file"], {}, "DIR: file is not a directory"),
    (["two\nlines"], {}, "DIR: two; lines is not a directory"),
    ([""], {}, "DIR: the name of a directory is empty"),
    ([], {"MCP_FILESYSTEM_ROOTS": "no/such"}, "MCP_FILESYSTEM_ROOTS: no/such is not a directory"),
    (["--root", "file:rw"], {}, "--root: file is not a directory"),
    (["--root", "root:wr"], {}, "--root: root:wr is not a directory; it is written DIR, DIR:ro or DIR:rw"),
    (["--root", ":rw"], {}, "--root: the name of a directory is empty"),
    (["--root", "root:rw", "--root", "root:ro"], {}, "root: is given both as read-only and as writable"),
    ([], {"MCP_FILESYSTEM_ROOT": "root:rw,no/such"}, "MCP_FILESYSTEM_ROOT: no/such is not a directory"),
    (["--deny", "/etc/*"], {}, "--deny: pattern /etc/*: a pattern is relative to the start"),
    (["--allow", "{a,b}" * 9], {}, "--allow: pattern"),
    (["--disable-tool", "raed_file"], {}, "--disable-tool: there is no tool 'raed_file'"),
    ([], {"MCP_FILESYSTEM_DISABLE_TOOL": "read_file,x"}, "--disable-tool: there is no tool 'x'"),
    (None, {}, "give at least one DIR"),
    (["--token-file", "no/such"], {}, "--token-file: no/such: No such file or directory"),
    (["--token-file", "."], {}, "--token-file: .: Is a directory"),
    (["--token-file", "empty"], {}, "--token-file: empty is empty"),
    (["--token-file", "words"], {}, "--token-file: words: a token is one word"),
    (["--token-file", "bytes"], {}, "--token-file: bytes: a token is one word"),
    ([], {"MCP_TOKEN": "hunter2 hunter3"}, "MCP_TOKEN: a token is one word"),
    (
        ["--transport", "http", "--host", "0.0.0.0"],
        {},
        "give a token by --token-file or MCP_TOKEN, several by --tokens-file",
    ),
    (
        ["--transport", "http", "--host", ""],
        {},
        "give a token by --token-file or MCP_TOKEN, several by --tokens-file",
    ),
    (["--settings", "."], {}, ".: Is a directory"),
    (["--settings", ""], {}, ".: Is a directory"),
    (["--trace", "no/such/file"], {}, "--trace: no/such/file: No such file or directory"),
    (["--trace", "."], {}, "--trace: .: Is a directory"),
    (["--trace", os.devnull], {}, "--trace: /dev/null is not a regular file"),
]


@pytest.mark.parametrize(("arguments", "environment", "reason"), REFUSED)
def test_what_is_refused_in_one_line(
    arguments: list[str] | None,
    environment: dict[str, str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {"file": b"", "empty": b" \n", "words": b"hunter2 hunter3", "bytes": b"hunter2\xff"}.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "root").mkdir()
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    # Without a directory of its own, a case gets one, unless that is what it is about.
    is_about_roots = arguments is None or "MCP_FILESYSTEM_ROOTS" in environment or "DIR: " in reason
    given = [*(arguments or []), *([] if is_about_roots else ["root"])]
    if given[:1] == ["--port"] and len(given) == 2:
        given.reverse()
    with pytest.raises(SystemExit) as ended:
        run(filesystem, given)
    said = capfd.readouterr()
    assert ended.value.code == 2
    assert said.out == ""
    assert said.err.startswith("filesystem: ")
    assert reason in said.err
    assert said.err.count("\n") == 1
    assert "hunter2" not in said.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (FILES, "python -m servers.filesystem: give at least one DIR that may be read\n"),
        ([*SLOW, "--broken"], f"{CALLED}: /there/is/none: No such file or directory\n"),
        (
            [*SLOW, "--transport", "http", "--broken"],
            f"{CALLED}: /there/is/none: No such file or directory\n",
        ),
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
def test_a_process_that_can_not_start_says_why(command: list[str], reason: str) -> None:
    with Raw(command) as server:
        assert server.rest() == []
        assert server.wait() == 2
        said = server.stderr()
        assert said.startswith(reason)
        assert said.count("\n") == 1


def test_a_program_that_failed_says_why_and_ends_with_1(capfd: pytest.CaptureFixture[str]) -> None:
    async def fail() -> None:
        raise Failed("nobody is there\x1b[1m")

    assert run_app("door", Server[None](Implementation(name="door", version="1")), Options(), ready=fail) == 1
    assert capfd.readouterr() == ("", "door: nobody is there\N{REPLACEMENT CHARACTER}[1m\n")


WAITING = """
import anyio, signal
from shared import Implementation, Server
from shared.program.run import Options, run_app

async def wait():
    signal.raise_signal(signal.SIGTERM)
    await anyio.sleep_forever()

app = Server[None](Implementation(name="door", version="1"))
raise SystemExit(run_app("door", app, Options(), ready=wait))
"""


@pytest.mark.slow
def test_a_signal_ends_a_program_that_is_not_ready_yet() -> None:
    with Raw([sys.executable, "-c", WAITING]) as server:
        assert server.wait() == 0
        assert server.stderr() == ""


@pytest.mark.slow
def test_a_console_script_complains_under_its_own_name() -> None:
    main = "from servers.filesystem.__main__ import main; main()"
    start = f"import sys; sys.argv[0] = '/a/bin/mcp-bundle-filesystem'; {main}"
    with Raw([sys.executable, "-c", start]) as server:
        assert server.wait() == 2
        assert server.stderr() == "mcp-bundle-filesystem: give at least one DIR that may be read\n"


@pytest.mark.slow
def test_whoever_starts_it_in_a_terminal_is_told_what_it_waits_for() -> None:
    ours, terminal = os.openpty()
    with os.fdopen(terminal, "rb") as stdin, Raw(SLOW, stdin=stdin) as server:
        os.write(ours, b"\x04")
        assert server.wait() == 0
        assert server.stderr().startswith(f"{CALLED}: a client is to start this program")
    os.close(ours)


@pytest.mark.slow
def test_a_trace_may_not_go_where_the_protocol_is(tmp_path: Path) -> None:
    with (
        (tmp_path / "out").open("wb") as taken,
        Raw([*SLOW, "--trace", str(tmp_path / "out")], stdout=taken) as server,
    ):
        assert server.wait() == 2
        assert server.stderr() == f"{CALLED}: --trace: {tmp_path}/out is where the protocol is spoken\n"
    assert (tmp_path / "out").read_bytes() == b""


@pytest.mark.slow
def test_a_busy_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        host, port = busy.getsockname()[:2]
        with Raw([*SLOW, "--transport", "http", "--host", host, "--port", str(port)]) as server:
            assert server.wait() == 2
            reason = f"{CALLED}: can't listen on {host} port {port}: Address already in use"
            assert server.stderr() == f"{reason}; --port takes another one, 0 any that is free\n"


@pytest.mark.slow
def test_a_missing_extra(tmp_path: Path) -> None:
    # An interpreter without site-packages, but for what the core needs.
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
    command = [sys.executable, "-S", "-m", "tests.checks.faults.slow_server"]
    with Raw([*command, "--transport", "http"], env=env) as server:
        assert server.wait() == 2
        assert server.stderr() == (
            # Without site-packages there is no pip.
            f"{CALLED}: --transport http: it needs the extra 'http': "
            f"uv pip install --python {sys.executable} -e '{ROOT}[http]'\n"
        )
    with Raw(command, env=env) as server:
        server.open().close_stdin()
        assert server.wait() == 0


# What it says of itself


def test_help_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in (60, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = cli._parser(filesystem, "files").format_help().splitlines()
        assert lines[0] == "usage: files [OPTION ...] [DIR ...]"
        assert columns / 2 < max(map(len, lines)) <= columns


def test_version_and_help(capfd: pytest.CaptureFixture[str]) -> None:
    for argument in ("--version", "--help"):
        with pytest.raises(SystemExit) as ended:
            run(filesystem, [argument])
        assert ended.value.code == 0
    said = capfd.readouterr()
    assert said.err == ""
    assert said.out.startswith(f"filesystem {filesystem.implementation.version}\n")
    for name in Options.model_fields:
        assert f"MCP_{name.upper()}" in said.out or name in ONLY_VARIABLES
    assert "MCP_FILESYSTEM_ROOTS" in said.out


def test_the_limits_of_tasks_reach_the_server() -> None:
    app = Server[Any](Implementation(name="limited", version="1"))
    given = ["--max-tasks", "4", "--max-client-tasks", "3", "--max-task-results", "2000", "--task-seconds", "1"]
    set_limits(app, options(given, {}))
    assert app.task_limits == TaskLimits(total=4, of_one_client=3, result_bytes=2_000, seconds=1.0)
