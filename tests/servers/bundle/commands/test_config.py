"""`config` prints what each client documents; test_install.py shows that it starts the server."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from servers.bundle.commands import config
from servers.bundle.commands.config import HostParser
from servers.bundle.hosts.clients import CLIENTS, Client, get_client
from servers.bundle.hosts.configured import read_entries
from servers.bundle.hosts.launching import launch_command
from servers.catalog import CATALOG, load_catalog
from shared.program.messages import missing_extra_message
from shared.program.run import Options
from tests.servers.bundle.refusals import not_refused, refused

ROOT = Path(__file__).resolve().parents[4]
GOLDEN = Path(__file__).parent / "golden"

# JSON has no comments, so the source of each golden file is here. Codex CLI 0.169.0, Claude
# Code 2.1.330 and Gemini CLI 0.61.0 have read their files, and Claude Code has connected to the server.
SOURCES = {
    "claude-desktop": "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
    "claude-code": "https://code.claude.com/docs/en/mcp",
    "vscode": "https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
    "cursor": "https://cursor.com/docs/mcp",
    "windsurf": "https://docs.devin.ai/desktop/cascade/mcp",
    "zed": "https://zed.dev/docs/ai/mcp",
    "cline": "https://docs.cline.bot/mcp/mcp-overview",
    "gemini": "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
    "codex": "https://github.com/openai/codex/blob/main/docs/config.md",
}
# Their documentation has no variables in headers.
WITHOUT_VARIABLES = ("zed", "cline")
ENDINGS = {"json": "json", "jsonc": "json", "toml": "toml"}


@pytest.fixture(autouse=True)
def _notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes").mkdir()
    monkeypatch.chdir(tmp_path)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert config.main(words) == 0
    return capsys.readouterr().out


def golden(client: Client, kind: str, folder: Path) -> str:
    """Returns the golden file, with the command and the folder of this machine."""
    text = (GOLDEN / f"{client.name}{kind}.{ENDINGS[client.format]}").read_text()
    command, *words = launch_command(load_catalog().entry("filesystem"))
    assert not words, "this checkout is not installed: its console scripts are missing"
    for shown, real in (("/opt/mcp/bin/mcp-bundle-filesystem", command), ("/home/ann", str(folder))):
        text = text.replace(shown, json.dumps(real)[1:-1])
    return text


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_config_prints_the_documented_snippet_of_each_client(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Covers a server that the client starts, and a server at a URL."""
    assert client.source == SOURCES[client.name]
    words = ("filesystem", "notes", "--allow-write", "--client", client.name, "--env", "MCP_LOG_LEVEL=info")
    assert printed(capsys, *words) == golden(client, "", tmp_path)
    words = ("filesystem", "--client", client.name, "--url", "https://mcp.example.com/filesystem/mcp")
    token = ("--token-variable", "MCP_TOKEN")
    if not client.http:
        error = refused(capsys, config.main, *words)
        assert error == f"the file of {client.title} can list only servers that it starts, not a server with a URL"
    elif client.name in WITHOUT_VARIABLES:
        assert printed(capsys, *words) == golden(client, "-http", tmp_path)
        error = "can't read a token from a variable: add the Authorization header by hand"
        assert refused(capsys, config.main, *words, *token).endswith(error)
    else:
        assert printed(capsys, *words, *token) == golden(client, "-http", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "encoding", "folder"), [("cursor", "ascii", "ü €😀"), ("codex", "latin-1", "é")])
def test_output_in_a_narrow_encoding_has_equivalent_escapes(
    name: str, encoding: str, folder: str, tmp_path: Path
) -> None:
    (tmp_path / folder).mkdir()
    words = ["filesystem", folder, "--env", "FÜR=é", "--client", name]
    found = subprocess.run(
        [sys.executable, "-m", "servers", "config", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    (tmp_path / "settings").write_bytes(found.stdout)
    entry = read_entries(get_client(name), tmp_path / "settings")["filesystem"]
    assert entry["args"][-1:] == [str(tmp_path / folder)]
    assert entry["env"] == {"FÜR": "é"}


PASSING = "/home/ann/.cache/uv/archive-v0/x1/bin/python"


def test_config_from_the_uv_cache_prints_a_permanent_uvx_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("uv", "uvx"):
        (tmp_path / name).touch(0o700)
    monkeypatch.setattr("sys.executable", PASSING)
    monkeypatch.setenv("UV", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://packages.example/simple")
    monkeypatch.setenv("UV_INDEX", "https://ann:hush@packages.example/simple")
    text = printed(capsys, "filesystem", "notes", "--client", "cursor")
    (entry,) = json.loads(text)["mcpServers"].values()
    words = ["--from", f"{ROOT}[filesystem]", "mcp-bundle-filesystem", str(tmp_path / "notes")]
    assert (entry["command"], entry["args"]) == (str(tmp_path / "uvx"), words)
    assert entry["env"]["UV_DEFAULT_INDEX"] == "https://packages.example/simple"
    assert "hush" not in text
    (tmp_path / "uvx").unlink()
    (entry,) = json.loads(printed(capsys, "filesystem", "notes", "--client", "cursor"))["mcpServers"].values()
    assert (entry["command"], entry["args"]) == (str(tmp_path / "uv"), ["tool", "run", *words])


def test_config_from_the_uv_cache_without_a_source_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.executable", PASSING)
    # The location of this copy can't be changed from outside.
    monkeypatch.setattr("shared.program.installation._ROOT", Path("/nowhere"))
    shown = refused(capsys, config.main, "filesystem", "notes", "--client", "cursor")
    assert shown.startswith("this copy is in uv's cache, which may be emptied at any time, and the wheel or checkout")
    assert shown.endswith(": install it with `uv tool install`, and run that copy")


def test_stderr_names_the_file_of_the_client_and_its_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    config.main(["prompts", "--starter", "--client", "codex"])
    assert capsys.readouterr().err == f"add this to {tmp_path / 'config.toml'}; then restart Codex\n"


def arguments(text: str) -> list[str]:
    (entry,) = json.loads(text)["mcpServers"].values()
    found: list[str] = entry["args"]
    return found


KEPT = [
    (["filesystem", "notes"], ["{here}/notes"]),
    (["filesystem", "--root", "notes:ro"], ["--root", "{here}/notes:ro"]),
    (["filesystem", "--root=notes:rw"], ["--root={here}/notes:rw"]),
    (["filesystem", "notes", "--settings", "own.toml"], ["{here}/notes", "--settings", "{here}/own.toml"]),
    (["filesystem", "--", "--root", "notes"], ["--root", "{here}/notes"]),
    (["filesystem", "--", "--", "notes"], ["--", "{here}/notes"]),
    (["sqlite", "--db", "own=shop.db"], ["--db", "own={here}/shop.db"]),
    (["sqlite", "--create", "new.db"], ["--create", "{here}/new.db"]),
    (["sqlite", ":memory:"], [":memory:"]),
    (["fetch", "--header", "a.example=X-Key:1"], ["--header", "a.example=X-Key:1"]),
]


def test_only_paths_of_the_server_become_absolute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.toml").touch()
    (tmp_path / "shop.db").touch()
    for (server, *words), args in KEPT:
        text = printed(capsys, server, "--client", "cursor", *words)
        assert arguments(text) == [arg.replace("{here}", str(tmp_path)) for arg in args]


REFUSED = [
    (["filesystem"], "specify at least one DIR that may be read"),
    (["filesystem", "missing"], "DIR: {here}/missing does not exist"),
    (["filesystem", "--root", "missing:ro"], "--root: {here}/missing does not exist"),
    (["sqlite", "missing.db"], "DATABASE: {here}/missing.db does not exist"),
    (["sqlite", "--create", "missing/new.db"], "DATABASE: {here}/missing/new.db does not exist"),
    (["filesystem", "notes", "--nonsense"], "unrecognized arguments: --nonsense"),
    (["filesystem", "notes", "--max-read", "x"], "--max-read: write a whole number"),
    (
        ["filesystem", "notes", "--transport", "http"],
        "omit --transport: a client uses stdio with",
    ),
    (["filesystem", "notes", "--env", "novalue"], "--env takes NAME=VALUE"),
    (["filesystem", "notes", "--env", "MCP_FILESYSTEM_POLL=perhaps"], "MCP_FILESYSTEM_POLL: "),
    (["filesystem", "notes", "--url", "http://a/mcp"], "a server with a --url is started elsewhere"),
    (["filesystem", "--url", "a.example/mcp"], "--url takes the URL of an endpoint"),
    (["fetch", "--token-variable", "MCP_TOKEN"], "--token-variable needs --url"),
    (["fetch", "--url", "http://a/mcp", "--token-variable", "a b"], "--token-variable takes the name of a variable"),
    (["fetch", "--name", "my web"], "the name 'my web' must consist of 1 to 32 letters, digits, hyphens or"),
    # With it, the names of some tools would exceed the limit of models.
    (
        ["fetch", "--name", "n" * 33],
        f"the name '{'n' * 33}' must consist of 1 to 32 letters",
    ),
    (["filesystem", "b\udce9"], "a path that is not UTF-8 can't be written to a client's file"),
    (["nothing"], "there is no server 'nothing' in the catalog"),
]


def test_unusable_arguments_are_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b\udce9").mkdir()
    rows = [([*words, "--client", "cursor"], why.replace("{here}", str(tmp_path))) for words, why in REFUSED]
    assert not not_refused(capsys, config.main, rows)


def test_path_arguments_of_another_catalog_become_absolute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.yaml").write_text(
        "servers: [{name: own, title: Own, version: '1', summary: Own., description: Own., category: testing,"
        " module: own.thing, transports: [stdio], arguments: ["
        "{name: dirs, type: directory, description: d, repeated: true}, "
        "{name: log, type: file, description: l, option: --log},"
        " {name: switch, type: boolean, description: o, option: --on},"
        " {name: word, type: string, description: w, option: --word}]}]"
    )
    (tmp_path / "x.log").touch()
    words = ["notes", "--log", "x.log", "--word", "notes", "--on", "notes", "--other", "notes"]
    text = printed(capsys, "own", *words, "--client", "cursor", "--catalog", "own.yaml")
    notes, log = str(tmp_path / "notes"), str(tmp_path / "x.log")
    expected = [notes, "--log", log, "--word", "notes", "--on", notes, "--other", "notes"]
    assert arguments(text) == ["-P", "-m", "own.thing", *expected]


def test_no_command_option_hides_a_server_option() -> None:
    parser = HostParser("install", "x")
    parser.add_entry()
    parser.add_scope()
    parser.add_server()
    # argparse has no public list of its options.
    ours = {option for action in parser._actions for option in action.option_strings}
    models: list[type[BaseModel]] = [Options]
    theirs = {f"--{name.replace('_', '-')}" for model in models for name in model.model_fields}
    theirs |= {argument.option or "" for entry in load_catalog().servers for argument in entry.arguments}
    assert ours & theirs == set()


def test_a_server_without_its_libraries_is_refused_with_its_extra(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copy(CATALOG, tmp_path / "catalog.yaml")
    text = Path(copy).read_text().replace("module: servers.fetch", "module: servers.nowhere")
    Path(copy).write_text(text)
    # Only servers of the bundle's own catalog have an extra.
    monkeypatch.setattr("servers.bundle.commands.config.CATALOG", Path(copy))
    shown = refused(capsys, config.main, "fetch", "--client", "cursor", "--catalog", str(copy))
    assert shown.endswith(missing_extra_message("fetch"))


def test_the_longest_server_name_leaves_room_for_every_tool_name() -> None:
    # The tools of `everything` have the names that the conformance suite requires, and no model uses them.
    served = [entry for entry in load_catalog().servers if entry.name != "everything"]
    tools = [tool for entry in served for tool in (*entry.tools.read, *entry.tools.write)]
    assert max(len(f"mcp__{'n' * 32}__{tool}") for tool in tools) <= 64
