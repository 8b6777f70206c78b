"""`doctor`: faults of the machine, each with its fix. Every fault is real: files, programs, ports."""

import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import Message
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.bundle.doctor.arguments import read_arguments
from servers.bundle.doctor.configurations import find_servers
from servers.bundle.doctor.examination import SECONDS, Examination, examine
from servers.bundle.doctor.findings import Finding, Severity
from servers.bundle.doctor.installation import this_installation
from servers.bundle.host_entries import BUNDLE
from servers.bundle.hosts.clients import get_client
from servers.bundle.program import main
from tests.servers.bundle.doctor.machines import CATALOG, OLD_SERVER, ROOT, Home, home
from tests.servers.bundle.refusals import refused
from tests.servers.bundle.terminal.terminal import terminal
from tests.web_site import Reply, answered

__all__ = ["home"]

slow = pytest.mark.slow
TOKEN = "do-not-show-this-7c1f"
NO_UNICODE = "http://a/\ud800"


@slow
async def test_a_healthy_machine_has_no_findings(home: Home) -> None:
    home.write("shop.db", "")
    entries = {
        "notes": {"command": sys.executable, "args": ["-P", "-m", "servers.filesystem", str(home.path / "notes")]},
        "shop": {"command": sys.executable, "args": ["-P", "-m", "servers.sqlite", str(home.path / "shop.db")]},
        "github": {"command": "npx", "args": ["-y", "somebody-elses-server"]},
    }
    home.write(".config/Claude/claude_desktop_config.json", json.dumps({"mcpServers": entries}))
    home.write(".cursor/mcp.json", '{ // none yet\n "mcpServers": {}}')
    assert await home._replace(installation=this_installation()).look() == []


@slow
async def test_an_entry_for_joined_servers_is_checked(home: Home) -> None:
    words = ["-P", "-m", "servers", "run", "--join", "filesystem", "sqlite"]
    variables = {"MCP_FILESYSTEM_ROOTS": str(home.path / "notes")}
    home.cursor("bundle", command=sys.executable, args=words, env=variables)
    machine, here = home.machine, this_installation()
    found = await examine(Examination(machine, here, home.path, CATALOG.servers, clients=[get_client("cursor")]))
    assert [one for one in found if one.severity is not Severity.OK] == []
    assert f"Cursor, {home.path}/.cursor/mcp.json: can be read; 1 of 1 server is ours" in map(joined, found)
    assert "Cursor, 'bundle': it starts, speaks 2025-11-25 and 2026-07-28, and has 19 tools" in map(joined, found)
    # A server given by its name is the only one in the output.
    assert not any("bundle" in one.where for one in await home._replace(installation=here).look("sqlite"))


@slow
async def test_a_python_file_of_the_user_is_started(home: Home) -> None:
    file = home.write("dice.py", "raise OSError('there are no dice')")
    home.cursor("dice", command=sys.executable, args=[str(file)])
    found = await home.only()
    assert (found.severity, found.where) == (Severity.FAULT, "Cursor, 'dice'")
    assert "there are no dice" in found.what


def joined(finding: Finding) -> str:
    return f"{finding.where}: {finding.what}"


@slow
async def test_an_entry_that_connects_to_an_unreachable_url_is_a_fault(home: Home) -> None:
    words = ["-P", "-m", "servers", "connect", "http://127.0.0.1:9/mcp"]
    home.cursor("remote", command=sys.executable, args=words, env={"MCP_CONNECT_TOKEN": TOKEN})
    found = await home.only()
    assert (found.severity, found.where) == (Severity.FAULT, "Cursor, 'remote'")
    assert "its last output: python -m servers connect: no connection to http://127.0.0.1:9/mcp: " in found.what
    assert TOKEN not in str(found)


def test_entries_of_other_commands_are_not_started(home: Home) -> None:
    for words in (["filesystem", "/notes"], ["demo"], []):
        home.cursor("x", command=sys.executable, args=["-m", "servers", "run", *words])
        assert find_servers(home.machine, home.path, [*CATALOG.servers, BUNDLE], ()).launches == []


# Findings without a start of the server: the entry of Cursor, the finding, and part of its fix


def started(server: str, *words: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-m", f"servers.{server}", *words]}


NOTES = "{home}/notes"
FILE = "{home}/.cursor/mcp.json"
FOUND: dict[str, tuple[dict[str, Any], str, str]] = {
    "an environment that was deleted": ({"command": "{home}/old/.venv/bin/mcp-bundle-filesystem", "args": [NOTES]},
        "is gone, with its environment {home}/old/.venv: it was moved or deleted", f"edit {FILE} to start /"),
    "an environment that was moved": (
        {"program": "#!/nowhere/.venv/bin/python3\nfrom servers.filesystem.__main__ import main\n"},
        "starts /nowhere/.venv/bin/python3, which does not exist",
        " to start /",
    ),
    "a python without the bundle": ({"program": "#!/bin/sh\necho \"No module named 'servers'\" >&2\nexit 1\n"},
        "it ended with exit code 1 before it answered; its last output: No module named 'servers'",
        " to start /"),
    "a program of another system": (
        {"program": "\x7fELF of no machine"}, "mcp-bundle-filesystem: Exec format error", " to start /",
    ),
    "a program that may not be executed": ({"command": "{home}/mcp-bundle-filesystem", "args": [NOTES]},
        "is not executable", "chmod +x '{home}/mcp-bundle-filesystem'"),
    "a python that was removed": ({**started("filesystem", NOTES), "command": "{home}/python3"},
        "points to /nowhere/python3.11, which is gone: that Python was removed or replaced", ""),
    "a wheel that uvx does not find": (
        {"command": "{home}/uvx", "args": ["--from", "{home}/x.whl[filesystem]", "mcp-bundle-filesystem", NOTES]},
        "{home}/x.whl, from which the server is installed, does not exist", "put the wheel there, or edit ",
    ),
    "a server that ends at once": (
        {"program": "#!/bin/sh\necho 'python -m servers.filesystem: --max-read: no' >&2\nexit 2\n"},
        "it ended with exit code 2 before it answered; its last output: --max-read: no", f"correct it in {FILE}; ",
    ),
    "a command that nobody finds": ({"command": "mcp-bundle-filesystem"},
        "mcp-bundle-filesystem is not an absolute path, and is not on the PATH", " to start /"),
    "a path longer than systems take": ({"command": f"/{'x' * 5000}/mcp-bundle-filesystem"},
        "its arguments can't be examined: File name too long", ""),
    "a directory that does not exist": (started("filesystem", "{home}/papers"),
        "the directory {home}/papers does not exist", f"create the directory, or correct the path in {FILE}"),
    "a directory of the environment": (
        {**started("filesystem"), "env": {"MCP_FILESYSTEM_ROOTS": "{home}/notes:{home}/papers"}},
        "the directory {home}/papers does not exist",
        "",
    ),
    "a database that does not exist": (started("sqlite", "--db", "shop={home}/shop.db:ro"),
        "the file {home}/shop.db does not exist", "put the file there, or correct the path"),
    "a path that is not absolute": (started("filesystem", "notes"),
        "notes is not an absolute path, so it means a different place in each client", f"write {NOTES}"),
    "a file in place of a directory": (
        started("filesystem", "{home}/open"), "{home}/open is a file, not a directory", "",
    ),
    "an option that does not exist": (started("filesystem", "--alow-write", NOTES),
        "there is no option --alow-write; did you mean --allow-write?", "info filesystem` lists the options"),
    "an option without its value": (
        started("filesystem", NOTES, "--deny", "--poll"), "argument --deny: expected one argument", "",
    ),
    "a token on the command line": (started("filesystem", "--token", TOKEN, NOTES),
        "there is no option --token; did you mean --token-file?", ""),
    "a token file that is missing": (started("filesystem", "--token-file", "{home}/none", NOTES),
        "the token file {home}/none does not exist", "create one: python -c"),
    "a token file that is empty": (started("filesystem", "--token-file", "{home}/empty", NOTES),
        "the token file {home}/empty is empty", "create one: python -c"),
    "a token file that is open to all": (started("filesystem", "--token-file", "{home}/open", NOTES),
        "the token file {home}/open is accessible to other users on this machine", "chmod 600 '"),
    "an argument that no system takes": (
        started("filesystem", "--deny", "a\0b", NOTES), "it can't be started: embedded null byte", "",
    ),
    **{
        f"no URL: {url!a}": ({"url": url}, "its URL or one of its headers can't be sent", "")
        for url in ("http://[", "http://127.0.0.1:x/mcp", "http://127.0.0.1:99999/mcp", "http://a\0/mcp", NO_UNICODE)
    },
    "a header that can't be sent": (
        {"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer \u00fc\U0001f600"}},
        "its URL or one of its headers can't be sent",
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("entry", "what", "fix"), FOUND.values(), ids=FOUND)
async def test_faults_of_an_entry_are_named_with_their_fix(
    entry: dict[str, Any], what: str, fix: str, home: Home
) -> None:
    home.write("empty", "\n")
    home.write("open", TOKEN, 0o644)
    home.write("mcp-bundle-filesystem", "#!/bin/sh\n")
    home.write("uvx", "#!/bin/sh\nexit 1\n", 0o755)
    (home.path / "python3").symlink_to("/nowhere/python3.11")
    entry = json.loads(json.dumps(entry).replace("{home}", str(home.path)))
    if "program" in entry:
        entry = {"command": home.program(entry["program"]), "args": [str(home.path / "notes")]}
    if entry.get("args", [""])[0] == "-m":
        entry["env"] = {"PYTHONPATH": str(ROOT), **entry.get("env", {})}
    home.cursor("filesystem", **entry)
    found = await home.only()
    assert (found.severity, found.where) == (Severity.FAULT, "Cursor, 'filesystem'")
    assert what.replace("{home}", str(home.path)) in found.what
    assert fix.replace("{home}", str(home.path)) in found.fix
    assert TOKEN not in repr(found)


@slow
async def test_a_command_in_the_uv_cache_is_a_warning(home: Home) -> None:
    text = f'#!/bin/sh\nexec {sys.executable} -m servers.filesystem "$@"\n'
    command = str(home.write(".cache/uv/archive-v0/x1/bin/mcp-bundle-filesystem", text, 0o755))
    home.cursor("files", command=command, args=[f"{home.path}/notes"], env={"PYTHONPATH": str(ROOT)})
    found = await home.only()
    assert found.severity is Severity.WARNING
    assert found.what == f"{command} is in uv's cache, which the next `uv cache clean` empties"
    assert found.fix.startswith(f"edit {home.path}/.cursor/mcp.json to start /")
    Path(command).unlink()
    found = await home.only()
    assert (found.severity, found.what) == (Severity.FAULT, f"{command} is gone, because uv's cache was emptied")


async def test_a_relative_command_is_not_found_by_a_desktop_client(home: Home) -> None:
    command = home.program("#!/bin/sh\n")
    home.environment["PATH"] = str(home.path / "bin")
    home.cursor("files", command="mcp-bundle-filesystem", args=[f"{home.path}/notes"])
    found = await home.only()
    assert (
        found.what
        == "mcp-bundle-filesystem is not an absolute path, and Cursor does not search where your shell does"
    )
    assert found.fix == f"in {home.path}/.cursor/mcp.json, write {command}"


@slow
async def test_a_terminal_client_finds_commands_on_the_path(home: Home) -> None:
    home.program(f'#!/bin/sh\nexec {sys.executable} -m servers.filesystem "$@"\n')
    home.environment.update({"PATH": f"{home.path}/bin:/bin", "PYTHONPATH": str(ROOT)})
    entry = {"command": "mcp-bundle-filesystem", "args": [f"{home.path}/notes"]}
    home.write(".claude.json", json.dumps({"mcpServers": {"files": entry}}))
    assert await home.look() == []


# The files of the clients


USELESS = [
    (".config/Claude/claude_desktop_config.json", '{"mcpServers": {"files": {]}}', "Claude Desktop can't read it: ",
     "correct it in an editor, or remove it; until then Claude Desktop starts none of its servers"),
    (".config/Code/User/mcp.json", '{"mcpServers": {"files": {}}}',
     "its servers are under 'mcpServers', which is not read", "rename 'mcpServers' to 'servers' in that file"),
    (".cursor/mcp.json", '{"mcpServers": {"filesystem": {"command": "x", "args": "y"}}}',
     "Cursor can't use it: 'filesystem': 'args' is not a list of strings", "correct the entry in {path}"),
    (".codex/config.toml", f"a = {'[' * 5000}{']' * 5000}", "Codex CLI can't read it: is nested too deeply",
     "correct it in an editor, or remove it; until then Codex CLI starts none of its servers"),
]  # fmt: skip


def test_an_unusable_configuration_is_named_with_its_fix(home: Home) -> None:
    for name, text, what, fix in USELESS:
        path = home.write(name, text)
        looked = find_servers(home.machine, home.path, CATALOG.servers, ())
        (found,) = [one for one in looked.findings if one.severity is not Severity.OK]
        assert what in found.what
        assert found.fix == fix.replace("{path}", str(path))
        assert str(path) in found.where + found.fix
        path.unlink()


async def test_project_configurations_are_examined(home: Home) -> None:
    """A project has a separate file, or a section in the file of the user."""
    servers = {"mcpServers": {"files": {"command": "/nowhere/mcp-bundle-filesystem"}}}
    own = home.write("project/.mcp.json", json.dumps(servers))
    assert (await home.only()).where == "Claude Code, 'files'"
    own.unlink()
    home.write(".claude.json", json.dumps({"projects": {f"{home.path}/project": servers}}))
    assert (await home.only()).where == "Claude Code, 'files'"


async def test_client_variables_in_arguments_are_not_checked(home: Home) -> None:
    home.write(
        "project/.vscode/mcp.json",
        json.dumps({"servers": {"files": {"command": "mcp-bundle-filesystem", "args": ["${workspaceFolder}"]}}}),
    )
    found = await examine(Examination(home.machine, home.installation, home.path / "project", CATALOG.servers))
    assert found[-1].what == "not started: its entry has variables that only the client knows"


# The arguments


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
async def test_an_unreadable_directory_is_a_fault(home: Home) -> None:
    (home.path / "notes").chmod(0)
    home.start("filesystem", f"{home.path}/notes")
    found = await home.only()
    (home.path / "notes").chmod(0o700)
    assert "you are not allowed to read" in found.what
    assert "chmod u+rX" in found.fix


def test_arguments_are_parsed_as_by_the_server() -> None:
    words = ["--deny=*.log", "--no-allow-write", "--port", "80", "--max-read", "5000", "notes", "--", "--poll"]
    given = read_arguments(CATALOG.entry("filesystem"), words)
    read = [(argument.name, value) for argument, value in given.own]
    assert read == [
        ("deny", "*.log"), ("allow_write", "0"), ("max_read", "5000"), ("roots", "notes"), ("roots", "--poll"),
    ]  # fmt: skip
    assert given.common == {"port": "80"}
    assert given.faults == []


def test_a_secret_that_looks_like_an_option_is_recognized() -> None:
    header, *_ = [one for one in CATALOG.entry("fetch").arguments if one.secret and one.option]
    given = read_arguments(CATALOG.entry("fetch"), [header.option or "", f"-{TOKEN}"])
    assert given.own == [(header, f"-{TOKEN}")]
    assert TOKEN not in repr(given.faults)


@slow
async def test_an_unknown_variable_is_a_warning_with_a_suggestion(home: Home) -> None:
    home.start("filesystem", f"{home.path}/notes", MCP_FILESYSTEM_ALOW_WRITE="1")
    found = await home.only()
    assert found.severity is Severity.WARNING
    assert found.what.endswith("did you mean MCP_FILESYSTEM_ALLOW_WRITE?")


@pytest.mark.parametrize(
    ("content", "mode", "severity", "what"),
    [
        (None, 0, Severity.FAULT, "can't be used: {path}: No such file"),
        ("[ada]\ntoken = 'hunter2'\n", 0o600, Severity.FAULT, "can't be used: {path}: 'ada': must be a table"),
        ("", 0o644, Severity.WARNING, "{path} is accessible to other users"),
    ],
    ids=["missing", "wrong", "open"],
)
async def test_problems_of_a_token_file_are_found(
    content: str | None, mode: int, severity: Severity, what: str, home: Home
) -> None:
    path = home.path / "tokens.toml"
    if content is not None:
        home.write("tokens.toml", content)
        path.chmod(mode)
    home.start("filesystem", "--transport", "http", "--tokens-file", str(path), f"{home.path}/notes")
    found = [one for one in await home.look() if "tokens file" in one.what]
    assert [(one.severity, what.format(path=path) in one.what) for one in found] == [(severity, True)]
    assert "hunter2" not in repr(found)


ODD = {
    "path": ["/a\0b", "--allow-write"],
    "home": ["~\0"],
    "token file": ["--token-file", "/a\0b"],
    "port": ["--transport", "http", "--port", "9" * 5000],
    "host": ["--transport", "http", "--port", "80", "--host", "a" * 70],
}


@pytest.mark.parametrize("words", ODD.values(), ids=ODD)
async def test_arguments_that_are_no_valid_path_are_faults(words: list[str], home: Home) -> None:
    home.start("filesystem", *words)
    assert (await home.look())[0].severity is Severity.FAULT


# Ports and URLs


async def test_a_port_in_use_is_a_fault(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        home.start("filesystem", "--transport", "http", "--port", str(port), f"{home.path}/notes")
        transport, taken = await home.look()
    assert "clients use stdio with servers that they start" in transport.what
    assert transport.fix.startswith("remove that from ")
    assert taken.what == f"port {port} on 127.0.0.1 is in use"
    assert taken.fix == "stop the program that listens there, or choose another --port"


@slow
async def test_a_url_without_a_listener_is_a_fault(home: Home) -> None:
    with socket.socket() as unused:  # bound, which reserves the port, but not listening
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        home.cursor("filesystem", url=f"http://me:{TOKEN}@127.0.0.1:{port}/mcp?key={TOKEN}")
        found = await home.only()
    assert found.what == f"nothing answers at http://127.0.0.1:{port}/mcp (Connection refused)"
    assert found.fix.startswith(
        f"start it: mcp-bundle-filesystem --transport http --port {port} DIR, or correct the "
    )


def repeat_token(_path: str, body: bytes, headers: Message) -> Reply:
    """Answers as a web site that is no MCP server, and repeats the token that it refuses."""
    error = {"code": -32000, "message": f"unknown: {headers['Authorization'].split()[-1]}"}
    return Reply(json.dumps({"jsonrpc": "2.0", "id": json.loads(body).get("id"), "error": error}).encode())


@slow
async def test_a_url_of_another_program_is_a_fault(home: Home) -> None:
    with answered(repeat_token) as site:
        url = f"{site}/mcp"
        home.cursor("filesystem", url=url, headers={"Authorization": f"Bearer {TOKEN}"})
        found = await home.only()
    assert f"the program that listens at {url} is not an MCP server, or has another path" in found.what
    assert "unknown: ***" in found.what
    assert "give the server another --port" in found.fix
    assert TOKEN not in repr(found)


@asynccontextmanager
async def serving(home: Home) -> AsyncIterator[str]:
    """Starts a filesystem server that requires a token; yields its URL."""
    command = [sys.executable, "-m", "servers.filesystem", "--transport", "http", "--port", "0", f"{home.path}/notes"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MCP_TOKEN": TOKEN}
    async with await anyio.open_process(command, env=env, stdout=None) as process:
        try:
            line = b""
            while not line.endswith(b"\n"):
                assert process.stderr is not None
                line += await process.stderr.receive()
            yield line.decode().removeprefix("listening on ").strip()
        finally:
            process.terminate()


@slow
async def test_a_url_that_refuses_the_token_is_a_fault(home: Home) -> None:
    async with serving(home) as url:
        home.cursor("filesystem", url=url, headers={"Authorization": f"Bearer not-{TOKEN}"})
        found = await home.only()
        home.cursor("filesystem", url=url)
        without = await home.only()
        home.cursor("filesystem", url=url, headers={"Authorization": f"Bearer {TOKEN}"})
        assert await home.look() == []
    assert found.what == f"{url} does not accept the token of the entry"
    assert "as the header Authorization: Bearer TOKEN" in found.fix
    assert TOKEN not in repr(found)
    assert without.severity is Severity.WARNING


@slow
async def test_the_token_variable_of_codex_is_checked(home: Home) -> None:
    async with serving(home) as url:
        entry = f'[mcp_servers.filesystem]\nurl = "{url}"\nbearer_token_env_var = "FILES_TOKEN"\n'
        home.write(".codex/config.toml", entry)
        unset = await home.only()
        home.environment["FILES_TOKEN"] = f"not-{TOKEN}"
        wrong = await home.only()
        home.environment["FILES_TOKEN"] = TOKEN
        assert await home.look() == []
    assert unset.severity is Severity.WARNING
    assert (
        unset.what
        == "not checked: FILES_TOKEN, from which Codex CLI takes the token, is empty or not set in this shell"
    )
    assert unset.fix == "set FILES_TOKEN where Codex CLI is started"
    assert wrong.what == f"{url} does not accept the token in FILES_TOKEN"
    assert TOKEN not in repr([unset, wrong])


# Faults that only a start shows


@slow
async def test_other_output_on_stdout_is_found(home: Home) -> None:
    command = home.program(f'#!/bin/sh\necho Welcome\nexec {sys.executable} -m servers.filesystem "$@"\n')
    home.cursor("files", command=command, args=[f"{home.path}/notes"], env={"PYTHONPATH": str(ROOT)})
    found = await home.only()
    assert found.what == "1 line of its stdout is not a message, so clients may disconnect"
    assert "write to stderr" in found.fix


@slow
async def test_a_server_that_does_not_answer_is_found(home: Home) -> None:
    home.cursor("files", command=home.program("#!/bin/sh\nwhile read -r line; do :; done\n"))
    found = await home.only(seconds=0.3)
    assert found.what == "no answer within 0.3 seconds after it was started"
    assert found.fix.startswith("start it in a terminal, and read its whole output")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
async def test_pipes_in_place_of_files_do_not_block(home: Home) -> None:
    """Pipes are in place of a configuration, a program, and a token file."""
    pipe = home.path / "bin" / "mcp-bundle-filesystem"
    pipe.parent.mkdir()
    os.mkfifo(pipe, 0o700)
    home.environment["MCP_TOKEN_FILE"] = str(pipe)
    home.cursor("filesystem", command=str(pipe))
    (home.path / ".claude.json").symlink_to(pipe)
    found = [finding.what for finding in await home.look()]
    assert "Claude Code can't read it: not a file" in found
    assert f"{pipe} is not executable" in found


@slow
async def test_a_program_that_floods_its_pipes_is_a_fault(home: Home) -> None:
    home.cursor("filesystem", command=home.program("#!/bin/sh\nyes >&2 &\nhead -c 70000000 /dev/zero\nread x\n"))
    assert (await home.look(seconds=1))[0].severity is Severity.FAULT


@slow
async def test_an_older_server_and_protocol_are_found(home: Home) -> None:
    home.cursor("files", command=home.program(f"#!{sys.executable}\n{OLD_SERVER}"))
    era, version = await home.look()
    assert (era.severity, version.severity) == (Severity.FAULT, Severity.WARNING)
    assert era.what == "it does not speak 2026-07-28: method not found"
    assert version.what == f"it is version 0.0.1, but this is {CATALOG.entry('filesystem').version}"
    assert "update it where it is installed" in version.fix


async def test_a_secret_in_the_output_of_a_server_is_not_printed(home: Home) -> None:
    command = home.program('#!/bin/sh\necho "bad token $MCP_TOKEN for $2" >&2\nexit 1\n', "mcp-bundle-fetch")
    header = f"api.example.org=Authorization:Bearer {TOKEN}"
    home.cursor("web", command=command, args=["--header", header], env={"MCP_TOKEN": f"x{TOKEN}"})
    found = await home.only()
    assert "bad token" in found.what
    assert TOKEN not in repr(found)


# The shell and the command


async def test_variables_of_the_shell_are_reported(home: Home) -> None:
    home.environment.update(MCP_FILESYSTEM_ALLOW_WRITE=TOKEN, MCP_TOKEN_FILE=f"{home.path}/token")
    home.start("filesystem", f"{home.path}/papers")
    found = {one.what: one for one in await home.look()}
    one = found["MCP_FILESYSTEM_ALLOW_WRITE is set, and changes filesystem when it is started from here"]
    assert (one.severity, one.fix) == (Severity.WARNING, "unset MCP_FILESYSTEM_ALLOW_WRITE, unless you intend this")
    assert "MCP_TOKEN_FILE is set, and changes every server when it is started from here" in found
    assert f"the token file {home.path}/token does not exist" in found
    assert TOKEN not in repr(found)


@pytest.fixture
def shell(own_home: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.chdir(own_home / "project")
    return home


def test_the_command_prints_a_line_for_each_finding(shell: Home, capsys: pytest.CaptureFixture[str]) -> None:
    shell.start("filesystem", f"{shell.path}/papers")
    assert main(["doctor", "filesystem"]) == 1
    *_, fault, total = capsys.readouterr().out.splitlines()
    where, fix = "Cursor, 'filesystem'", f"create the directory, or correct the path in {shell.path}/.cursor/mcp.json"
    assert fault == f"fault   {where}: the directory {shell.path}/papers does not exist. Fix: {fix}"
    assert total == "1 fault, 0 warnings"


@slow
def test_lines_in_a_terminal_wrap_between_words(home: Home) -> None:
    papers = f"{home.path}/{'papers' * 15}"
    home.start("filesystem", papers)
    with terminal(["doctor", "filesystem"], home.path) as shown:
        assert shown.end() == 1
    assert f"the directory {papers} does not exist. Fix: create the directory" in " ".join(shown.shown.split())
    assert [line for line in shown.shown.splitlines() if len(line.strip()) > 80 and " " in line.strip()] == []


@slow
def test_no_fault_gives_exit_code_0(shell: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """A client may be examined alone."""
    shell.start("filesystem", f"{shell.path}/papers")
    assert main(["doctor", "everything", "--client", "vscode", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["what"] for one in found if one["severity"] != "ok"] == ["its configuration has none of the servers"]
    assert found[-1]["where"] == "everything"
    assert found[-1]["what"].startswith("it starts, speaks 2025-11-25 and 2026-07-28, and has ")


def test_wrong_usage_gives_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no server 'nobody'" in refused(capsys, main, "doctor", "nobody")
    assert "there is no client 'emacs'" in refused(capsys, main, "doctor", "--client", "emacs")


def test_the_trial_timeout_is_shorter_than_those_of_clients() -> None:
    assert SECONDS < 60


@slow
async def test_prompt_files_that_are_not_served_are_listed(home: Home) -> None:
    home.write("library/good.md", "Say hello.")
    home.write("library/open.md", "---\ndescription: never ends\n")
    home.write("library/hint.md", "---\ndescription: before: after\n---\nSay it.")
    home.start("prompts", str(home.path / "library"))
    found = await home._replace(installation=this_installation()).look()
    assert [one.what.partition(":")[0] for one in found] == ["hint.md", "open.md"]
    assert found[1].what == "open.md:1: its front matter has no closing --- line"
    assert {one.severity for one in found} == {Severity.WARNING}


async def test_a_byte_order_mark_before_plain_json_is_a_warning(home: Home) -> None:
    home.write(".claude.json", "\ufeff{}")
    home.write(".cursor/mcp.json", "\ufeff{}")
    (found,) = await home.look()
    assert found.where.startswith("Claude Code, ")
    assert found.what == "it starts with a byte order mark, so Claude Code may treat it as empty"
