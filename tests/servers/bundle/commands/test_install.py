"""`install` and `uninstall`: minimal, safe and visible changes to the file of a client."""

import json
import os
import re
import socket
import stat
import sys
from pathlib import Path

import pytest

from servers.bundle.commands.install import main as install
from servers.bundle.commands.install import uninstall
from servers.bundle.hosts.checking import check
from servers.bundle.hosts.clients import CLIENTS, get_client
from servers.bundle.hosts.configured import ConfiguredServer, parse_entry, read_entries
from servers.bundle.hosts.installing import Receipts, Target
from servers.bundle.hosts.installing import install as plan
from servers.bundle.hosts.installing import uninstall as plan_removal
from servers.bundle.hosts.launching import launch_command
from servers.catalog import load_catalog
from servers.common.machine import Machine, state_folder
from tests.servers.bundle.refusals import exit_code, refused

SERVER = ConfiguredServer("notes", "/opt/mcp", ("/home/ann",), {"TOKEN": "hush"})
SYSTEMS = ("linux", "macos", "windows")

WRITTEN = {
    "json": '{\n  "theme": "dark",\n  "mcpServers": {\n    "old": {"command": "x"}\n  },\n  "servers": {}\n}\n',
    "toml": '# mine\r\nmodel = "x"\r\n\r\n[mcp_servers.old] # why\r\ncommand = "x"\r\n\r\n[projects."/w"]\r\nn = 1',
    "jsonc": '\ufeff{\r\n\t// mine\r\n\t"servers": {},\r\n\t"mcpServers": {\r\n\t\t"old": {}, // why\r\n\t},\r\n}',
}


@pytest.fixture(autouse=True)
def home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a home directory; the commands run in a project inside it."""
    (own_home / "work" / "notes").mkdir(parents=True)
    monkeypatch.chdir(own_home / "work")
    return own_home


def machine(system: str, home: Path) -> Machine:
    roaming = {"APPDATA": str(home / "AppData" / "Roaming")} if system == "windows" else {}
    return Machine(system, home, roaming)  # type: ignore[arg-type]


def target(name: str, home: Path, system: str = "linux") -> Target:
    return Target.of(get_client(name), machine(system, home), "user", home)


def put(client: str, home: Path, *arguments: str) -> None:
    """Writes the entry of `install fetch` without starting the server."""
    command, *words = launch_command(load_catalog().entry("fetch"), arguments)
    plan(target(client, home), ConfiguredServer("fetch", command, tuple(words)), replace=False).apply()


def files(folder: Path) -> list[str]:
    found = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    return sorted(path for path in found if not path.startswith((".local", "Library/Application Support/mcp-server")))


@pytest.mark.parametrize("name", [client.name for client in CLIENTS])
def test_uninstall_restores_the_file_byte_for_byte(name: str, home: Path) -> None:
    """Covers each system, and a file that did not exist before."""
    for system in SYSTEMS:
        spot = target(name, home / system, system)
        before = WRITTEN[spot.client.format].encode()
        spot.path.parent.mkdir(parents=True, exist_ok=True)
        spot.path.write_bytes(before)
        plan(spot, SERVER, replace=False).apply()
        entry = read_entries(spot.client, spot.path)["notes"]
        assert parse_entry(spot.client, "notes", entry) == SERVER
        plan_removal(spot, "notes", []).apply()
        assert spot.path.read_bytes() == before
        new = target(name, home / f"new-{system}", system)
        plan(new, SERVER, replace=False).apply()
        assert new.path.is_file()
        plan_removal(new, "notes", []).apply()
        assert not new.path.parent.exists() or new.path.parent == home / f"new-{system}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["claude-desktop", "zed", "codex"])
def test_install_starts_the_entry_as_the_client_does(
    name: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder `servers` in the home directory would shadow the bundle."""
    shadow = home / "servers"
    shadow.mkdir()
    (shadow / "__init__.py").write_text("raise RuntimeError('shadowed')")
    for word, shown in (("notes", "works: 12 tools"), ("--allow-write", "works: 20 tools")):
        assert exit_code(install, "filesystem", "notes", word, "--client", name) == 0
        assert capsys.readouterr().out.splitlines()[-2] == shown


@pytest.mark.slow
def test_an_entry_that_does_not_start_is_reported_and_stays(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(install, "fetch", "--client", "cursor", "--env", "PYTHONHOME=/nowhere") == 1
    *before, fault, last = capsys.readouterr().out.splitlines()
    assert fault.startswith("fault: it ended with exit code 1 before it answered; its last output: ")
    assert ". Fix: " in fault
    assert not any(line.startswith("done: ") for line in before)
    assert last == "the server does not work yet, but its entry was kept; run install again, or uninstall"
    assert "fetch" in read_entries(get_client("cursor"), home / ".cursor" / "mcp.json")


@pytest.mark.slow
def test_install_checks_a_server_at_a_url(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:  # bound, which reserves the port, but not listening
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/mcp"
        assert exit_code(install, "fetch", "--client", "codex", "--url", url) == 1
        assert f"fault: nothing answers at {url}" in capsys.readouterr().out
    words = ("fetch", "--client", "codex", "--url", url, "--token-variable", "NO_SUCH_TOKEN")
    assert exit_code(install, *words) == 0
    assert f'url = "{url}"' in (home / ".codex" / "config.toml").read_text()
    assert "warning: not checked: NO_SUCH_TOKEN, from which Codex CLI takes the token" in capsys.readouterr().out


def test_project_scope_writes_the_file_of_the_project(home: Path) -> None:
    places = {
        "claude-code": ".mcp.json", "vscode": ".vscode/mcp.json", "cursor": ".cursor/mcp.json",
        "zed": ".zed/settings.json", "gemini": ".gemini/settings.json", "codex": ".codex/config.toml",
    }  # fmt: skip
    before = files(home)
    for name, place in places.items():
        spot = Target.of(get_client(name), machine("linux", home), "project", home / "work")
        assert spot.path == home / "work" / place
        plan(spot, SERVER, replace=False).apply()
        exit_code(uninstall, "fetch", "--client", name, "--scope", "project", "--name", "notes")
        assert files(home) == before


def test_a_dry_run_prints_the_change_and_writes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(home)
    exit_code(install, "prompts", "--starter", "--client", "cursor", "--dry-run")
    assert capsys.readouterr().out.endswith("nothing was changed, because of --dry-run\n")
    assert (files(home), (home / ".local").exists()) == (before, False)
    # The diff has no escape codes.
    (home / ".claude.json").write_text('{\n  "a\u202e\x9b31m": {}\n}', encoding="utf-8")
    exit_code(install, "fetch", "--client", "claude-code", "--dry-run")
    assert not {"\u202e", "\x9b"} & set(capsys.readouterr().out)


def test_a_new_file_of_a_client_is_noted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("fetch", "--client", "cursor", "--dry-run")
    note = "note: Cursor had no such file, so check that Cursor is installed"
    for scope, is_noted in (("user", True), ("project", False)):
        exit_code(install, *words, "--scope", scope)
        assert (note in capsys.readouterr().out) is is_noted


def test_an_identical_entry_leaves_the_file_untouched(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put("cursor", home)
    path = home / ".cursor" / "mcp.json"
    before = path.stat()
    exit_code(install, "fetch", "--client", "cursor")
    after = path.stat()
    then = f"works: 2 tools\ndone: now {get_client('cursor').reload_action}\n"
    assert capsys.readouterr().out == f"{path} already has this entry\n{then}"
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_other_arguments_update_the_installed_entry(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {}}')
    put("cursor", home)
    put("cursor", home, "--timeout", "9")
    assert json.loads(path.read_text())["mcpServers"]["fetch"]["args"] == ["--timeout", "9"]
    exit_code(uninstall, "fetch", "--client", "cursor")
    assert path.read_text() == '{"mcpServers": {}}'


def test_replacing_an_installed_entry_prints_its_arguments(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put("cursor", home, "--timeout", "9")
    exit_code(install, "fetch", "--client", "cursor", "--dry-run")
    output = " ".join(capsys.readouterr().out.split())
    assert "note: 'fetch' had another entry, which is replaced; to keep both, use another --name" in output
    assert "note: the previous arguments: --timeout 9" in output


def test_printed_former_arguments_have_no_secrets(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    (program,) = launch_command(load_catalog().entry("fetch"))
    shown = {
        ("--header", "X: hush", "--timeout", "9"): "--header '…' --timeout 9",
        ("--header=X: hush",): "'--header=…'",
        ("--unknown", "hush"): None,
    }
    for words, expected in shown.items():
        path.write_text(json.dumps({"mcpServers": {"fetch": {"command": program, "args": words}}}))
        exit_code(install, "fetch", "--client", "cursor", "--replace", "--dry-run")
        output = capsys.readouterr().out
        assert "hush" not in output
        assert re.findall("the previous arguments: (.*)", output) == ([] if expected is None else [expected])


def test_removal_of_a_byte_order_mark_is_noted_and_backed_up(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only clients that read plain JSON need this; those that allow comments accept the mark."""
    for name, is_kept in (("claude-code", False), ("cursor", True)):
        spot = target(name, home)
        spot.path.parent.mkdir(exist_ok=True)
        spot.path.write_bytes(b'\xef\xbb\xbf{"theme": "dark"}')
        change = plan(spot, SERVER, replace=False)
        backup = change.apply()
        assert spot.path.read_bytes().startswith(b"\xef\xbb\xbf") is is_kept
        assert [note.partition(",")[0] for note in change.notes] == (
            [] if is_kept else ["its byte order mark was removed"]
        )
        assert backup is not None
        assert backup.read_bytes() == b'\xef\xbb\xbf{"theme": "dark"}'


def test_a_project_file_has_the_variables_of_its_client(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = {
        "vscode": "${workspaceFolder}/notes", "cursor": "${workspaceFolder}/notes",
        "claude-code": "${HOME}/work/notes", "codex": f"{home}/work/notes",
    }  # fmt: skip
    for name, shown in arguments.items():
        exit_code(install, "filesystem", "notes", "--client", name, "--scope", "project", "--dry-run")
        output = capsys.readouterr().out
        assert f'"{shown}"' in output
        assert ("note: the file is shared" in output) is (name == "codex")


def test_a_python_file_is_installed_without_a_catalog(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, install, "dice.py", "--client", "cursor") == f"there is no file {home}/work/dice.py"
    (home / "work" / "dice.py").write_text("")
    exit_code(install, "dice.py", "--sides", "6", "--client", "cursor", "--dry-run")
    output = capsys.readouterr().out
    assert f'"{home}/work/dice.py"' in output
    assert '"dice": {' in output
    assert '"--sides"' in output
    assert exit_code(install, "dice.py", "--client", "cursor") == 1
    ending = f"Fix: end {home}/work/dice.py with `run(app)`"
    assert ending in " ".join(capsys.readouterr().out.split())


def test_an_entry_of_the_user_is_replaced_only_with_replace(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    words = ("fetch", "--client", "cursor")
    # `null` is an entry too, and so is an installed entry that was changed since.
    for entry in ("null", '{"command": "mine"}'):
        path.write_text(f'{{"mcpServers": {{"fetch": {entry}}}}}')
        shown = refused(capsys, install, *words)
        assert shown == f"{path} already has a server 'fetch': use --replace, or another --name"
        assert entry in path.read_text()
        path.unlink()
        put("cursor", home, "--timeout", "9")
    path.write_text('{"mcpServers": {"fetch": {"command": "mine"}}}')
    exit_code(install, *words, "--replace")
    assert "mine" not in path.read_text()


def test_the_receipt_of_a_replacement_does_not_match_the_entry_of_the_user(home: Path) -> None:
    """Even if the change is interrupted between its receipt and its entry."""
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"fetch": {"command": "mine"}}}')
    change = plan(target("cursor", home), ConfiguredServer("fetch", "/bin/fetch"), replace=True)
    assert not change.record.entries["fetch"].is_of({"command": "mine"})


def test_uninstall_refuses_an_entry_of_the_user(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".cursor" / "mcp.json"
    shown = refused(capsys, uninstall, "fetch", "--client", "cursor")
    assert shown == f"{path} has no server 'fetch'"
    # A refusal leaves no lock behind.
    assert not (home / ".local").exists()
    path.parent.mkdir()
    for why in ("was not added by install", "was changed after install added it"):
        path.write_text('{"mcpServers": {"fetch": {"command": "mine"}}}')
        shown = refused(capsys, uninstall, "fetch", "--client", "cursor")
        assert shown == f"{path}: the server 'fetch' {why}: remove it by hand"
        assert "mine" in path.read_text()
        path.unlink()
        put("cursor", home)


def test_uninstall_removes_a_changed_entry_of_the_same_server(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    put("cursor", home)
    path.write_text(path.read_text().replace("[]", '["--timeout", "9"]'))
    exit_code(uninstall, "fetch", "--client", "cursor")
    assert not path.exists()


def test_uninstall_removes_an_entry_without_a_receipt(home: Path) -> None:
    """The receipt of a file that was removed by hand is dropped."""
    put("cursor", home)
    path = home / ".cursor" / "mcp.json"
    (home / ".local" / "state" / "mcp-server-bundle" / "installed.json").unlink()
    exit_code(uninstall, "fetch", "--client", "cursor")
    assert json.loads(path.read_text()) == {"mcpServers": {}}
    put("cursor", home)
    path.write_text("")
    put("cursor", home)
    exit_code(uninstall, "fetch", "--client", "cursor")
    assert path.read_text() == ""


def test_uninstall_from_the_uv_cache_works_without_the_wheel(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("cursor", home)
    monkeypatch.setattr("sys.executable", f"{home}/.cache/uv/archive-v0/x1/bin/python")
    # Where this copy stands can't be changed from outside.
    monkeypatch.setattr("shared.program.installation._ROOT", home)
    exit_code(uninstall, "fetch", "--client", "cursor")
    assert not (home / ".cursor").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_pipe_in_place_of_the_file_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".claude.json"
    os.mkfifo(path)
    assert refused(capsys, install, "fetch", "--client", "claude-code") == f"{path}: not a file"


def test_a_secret_in_a_url_is_written_but_not_printed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, url in (("a", "http://ann:hush@127.0.0.1:9/mcp"), ("b", "http://127.0.0.1:9/mcp?key=hush")):
        exit_code(install, "fetch", "--name", name, "--client", "cursor", "--url", url)
        assert url in (home / ".cursor" / "mcp.json").read_text()
    exit_code(install, "--url", "http://127.0.0.1:9/mcp?key=hush", "--client", "cursor", "--connect", "--dry-run")
    assert "hush" not in capsys.readouterr().out


@pytest.mark.skipif(sys.platform != "linux", reason="only there is a place where even root can't write")
def test_nothing_is_installed_without_a_receipt(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = home / ".local" / "state"
    state.parent.mkdir()
    state.symlink_to("/proc/nobody")
    refused(capsys, install, "fetch", "--client", "claude-code")
    assert not (home / ".claude.json").exists()


def test_an_invalid_file_is_refused_and_unchanged(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".claude.json"
    path.write_text("{\n  // mine\n}")
    shown = refused(capsys, install, "fetch", "--client", "claude-code")
    assert shown.startswith(f"{path}: is not JSON: line 2, column 3")
    assert files(home) == [".claude.json", "work", "work/notes"]
    # Servers in another form are not changed.
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text("mcp_servers = {}\n")
    shown = refused(capsys, install, "fetch", "--client", "codex")
    assert shown.startswith(f"{path}: its servers are not tables [mcp_servers.NAME]")
    assert path.read_text() == "mcp_servers = {}\n"
    (home / ".cursor").touch()
    assert refused(capsys, install, "fetch", "--client", "cursor").endswith("mcp.json: Not a directory")


def test_only_the_owner_can_read_the_backup(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text("{}")
    exit_code(install, "fetch", "--client", "cursor")
    backup = Path(capsys.readouterr().out.partition("backup of the previous file: ")[2].splitlines()[0])
    assert backup.read_text() == "{}"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_a_linked_file_stays_a_link(home: Path) -> None:
    real, link = home / "dotfiles.json", home / ".claude.json"
    real.write_text("{}")
    link.symlink_to(real)
    put("claude-code", home)
    assert link.is_symlink()
    assert "fetch" in real.read_text()
    exit_code(uninstall, "fetch", "--client", "claude-code")
    assert real.read_text() == "{}"


def test_a_concurrently_changed_file_is_not_overwritten(home: Path) -> None:
    spot = target("claude-code", home)
    spot.path.write_text("{}")
    change = plan(spot, SERVER, replace=False)
    spot.path.write_text('{"numStartups": 2}')
    with pytest.raises(ValueError, match="has just been changed by another program: try again"):
        change.apply()
    assert spot.path.read_text() == '{"numStartups": 2}'


def test_damaged_receipts_are_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    receipts = state_folder(machine("linux", home)) / "installed.json"
    assert receipts == home / ".local" / "state" / "mcp-server-bundle" / "installed.json"
    receipts.parent.mkdir(parents=True)
    receipts.write_text("{")
    shown = refused(capsys, install, "fetch", "--client", "cursor")
    assert shown == f"{receipts} is damaged: remove it, and remove the entries by hand"


@pytest.mark.parametrize(("option", "words"), [("--header", ["--header", "-hush"]), (None, ["hush"])])
def test_a_secret_that_looks_like_an_option_is_recognized(option: str | None, words: list[str]) -> None:
    entry = load_catalog().entry("fetch")
    secret = next(one for one in entry.arguments if one.secret).model_copy(update={"option": option})
    checked = check(entry.model_copy(update={"arguments": [secret]}), words, {}, bundled=False)
    assert checked.secrets == {words[-1]}


def test_output_and_receipts_have_no_secrets(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env = ("--env", "TOKEN=hush", "--env", "MCP_LOG_LEVEL=info")
    exit_code(install, "fetch", "--header", "a.example=X-Key:hush", "--client", "cursor", *env)
    printed = capsys.readouterr()
    assert "hush" not in printed.out + printed.err
    assert '+         "--header",' in printed.out
    assert '+         "TOKEN": …' in printed.out
    # This variable is known not to be secret.
    assert '+         "MCP_LOG_LEVEL": "info"' in printed.out
    assert "hush" in (home / ".cursor" / "mcp.json").read_text()
    assert "hush" not in (home / ".local" / "state" / "mcp-server-bundle" / "installed.json").read_text()
    assert Receipts(machine("linux", home)).of(home / ".cursor" / "mcp.json").made_file


def test_uninstall_refuses_arguments_of_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    shown = refused(capsys, uninstall, "fetch", "--timeout", "9", "--client", "cursor")
    assert shown == "the argument '--timeout' is not allowed: specify only the name of the server"
