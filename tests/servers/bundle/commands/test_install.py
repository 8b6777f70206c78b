"""`install` and `uninstall` change a client's file as little as can be, safely, and show what they do."""

import json
import os
import resource
import socket
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from servers.bundle.catalog import load_catalog
from servers.bundle.commands.install import main as install
from servers.bundle.commands.install import uninstall
from servers.bundle.hosts.checking import check
from servers.bundle.hosts.clients import CLIENTS, Machine, client_named, state_folder
from servers.bundle.hosts.configured import Configured, as_configured, read_entries
from servers.bundle.hosts.files import KEPT_BACKUPS, back_up, write_atomically
from servers.bundle.hosts.installing import Receipts, Target
from servers.bundle.hosts.installing import install as plan
from servers.bundle.hosts.installing import uninstall as plan_removal
from servers.bundle.hosts.launching import launch_command
from tests import disk

SERVER = Configured("notes", "/opt/mcp", ("/home/ann",), {"TOKEN": "hush"})
SYSTEMS = ("linux", "macos", "windows")

PLACES = (
    *("APPDATA", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "FLATPAK_XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"),
    *("CLINE_DATA_DIR", "CLINE_MCP_SETTINGS_PATH", "GEMINI_CLI_HOME", "CODEX_HOME"),
)
WRITTEN = {
    "json": '{\n  "theme": "dark",\n  "mcpServers": {\n    "old": {"command": "x"}\n  },\n  "servers": {}\n}\n',
    "toml": '# mine\r\nmodel = "x"\r\n\r\n[mcp_servers.old] # why\r\ncommand = "x"\r\n\r\n[projects."/w"]\r\nn = 1',
    "jsonc": '\ufeff{\r\n\t// mine\r\n\t"servers": {},\r\n\t"mcpServers": {\r\n\t\t"old": {}, // why\r\n\t},\r\n}',
}

each_client = pytest.mark.parametrize("name", [client.name for client in CLIENTS])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory of its own, and a project in it that the commands run in."""
    for variable in PLACES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work" / "notes").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def machine(system: str, home: Path) -> Machine:
    roaming = {"APPDATA": str(home / "AppData" / "Roaming")} if system == "windows" else {}
    return Machine(system, home, roaming)  # type: ignore[arg-type]


def target(name: str, home: Path, system: str = "linux") -> Target:
    return Target.of(client_named(name), machine(system, home), "user", home)


def run(command: Any, *words: str) -> int:
    code: int = command(words)
    return code


def put(client: str, home: Path, *arguments: str) -> None:
    """What the command writes for the fetch server, without starting it."""
    command, *words = launch_command(load_catalog().entry("fetch"), arguments)
    plan(target(client, home), Configured("fetch", command, tuple(words)), replace=False).make()


def refusal(capsys: pytest.CaptureFixture[str], command: Any, *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        command(words)
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    return line.partition(": ")[2]


def files(folder: Path) -> list[str]:
    found = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    return sorted(path for path in found if not path.startswith((".local", "Library/Application Support/mcp-server")))


@each_client
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_file_is_as_it_was_after_the_way_there_and_back(name: str, system: str, home: Path) -> None:
    spot = target(name, home, system)
    before = WRITTEN[spot.client.format].encode()
    spot.path.parent.mkdir(parents=True, exist_ok=True)
    spot.path.write_bytes(before)
    plan(spot, SERVER, replace=False).make()
    entry = read_entries(spot.client, spot.path)["notes"]
    assert as_configured(spot.client, "notes", entry) == SERVER
    plan_removal(spot, "notes", []).make()
    assert spot.path.read_bytes() == before


@each_client
@pytest.mark.parametrize("system", SYSTEMS)
def test_where_there_was_no_file_there_is_none_again(name: str, system: str, home: Path) -> None:
    spot = target(name, home, system)
    plan(spot, SERVER, replace=False).make()
    assert spot.path.is_file()
    plan_removal(spot, "notes", []).make()
    assert not spot.path.exists()
    assert spot.path.parent in (home, *home.parents) or not spot.path.parent.exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["claude-desktop", "zed", "codex"])
def test_what_was_installed_is_started_as_the_client_will(
    name: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the home directory, whose folder called `servers` would shadow the bundle."""
    shadow = home / "servers"
    shadow.mkdir()
    (shadow / "__init__.py").write_text("raise RuntimeError('shadowed')")
    for word, shown in (("notes", "works: 12 tools"), ("--allow-write", "works: 18 tools")):
        assert run(install, "filesystem", "notes", word, "--client", name) == 0
        assert capsys.readouterr().out.splitlines()[-1] == shown


@pytest.mark.slow
def test_what_does_not_start_is_told_and_stays(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(install, "fetch", "--client", "cursor", "--env", "PYTHONHOME=/nowhere") == 1
    *_, fault, last = capsys.readouterr().out.splitlines()
    assert fault.startswith("fault: it ended with exit code 1 before it answered; last it said: ")
    assert ". Fix: " in fault
    assert last == "it does not work yet; the entry stays, and install can be called again, or uninstall"
    assert "fetch" in read_entries(client_named("cursor"), home / ".cursor" / "mcp.json")


@pytest.mark.slow
def test_a_server_that_runs_elsewhere_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:  # bound, so that nobody else takes it, but not listening
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/mcp"
        assert run(install, "fetch", "--client", "codex", "--url", url) == 1
        assert f"fault: nothing answers at {url}" in capsys.readouterr().out
    words = ("fetch", "--client", "codex", "--url", url, "--token-variable", "NO_SUCH_TOKEN")
    assert run(install, *words) == 0
    assert "warning: not asked: NO_SUCH_TOKEN, from which Codex CLI takes the token" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("claude-code", ".mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("zed", ".zed/settings.json"),
        ("gemini", ".gemini/settings.json"),
        ("codex", ".codex/config.toml"),
    ],
)
def test_a_project_has_a_file_of_its_own(name: str, place: str, home: Path) -> None:
    before = files(home)
    words = ("fetch", "--client", name, "--scope", "project")
    run(install, *words, "--dry-run")
    spot = Target.of(client_named(name), machine("linux", home), "project", home / "work")
    assert spot.path == home / "work" / place
    plan(spot, SERVER, replace=False).make()
    run(uninstall, *words, "--name", "notes")
    assert files(home) == before


def test_a_server_that_runs_elsewhere_is_installed_by_its_url(home: Path) -> None:
    run(install, "fetch", "--client", "claude-code", "--url", "http://127.0.0.1:8000/mcp")
    found = json.loads((home / ".claude.json").read_text())
    assert found == {"mcpServers": {"fetch": {"type": "http", "url": "http://127.0.0.1:8000/mcp"}}}


def test_a_dry_run_shows_and_changes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(home)
    run(install, "prompts", "--starter", "--client", "cursor", "--dry-run")
    assert capsys.readouterr().out.endswith("nothing was changed, as --dry-run asks\n")
    assert (files(home), (home / ".local").exists()) == (before, False)


def test_what_is_there_already_is_no_change(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put("cursor", home)
    path = home / ".cursor" / "mcp.json"
    before = path.stat()
    run(install, "fetch", "--client", "cursor")
    after = path.stat()
    assert capsys.readouterr().out == f"{path} says so already\nworks: 2 tools\n"
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_other_arguments_update_the_entry_that_was_put_there(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {}}')
    put("cursor", home)
    put("cursor", home, "--timeout", "9")
    assert json.loads(path.read_text())["mcpServers"]["fetch"]["args"] == ["--timeout", "9"]
    run(uninstall, "fetch", "--client", "cursor")
    assert path.read_text() == '{"mcpServers": {}}'


@pytest.mark.parametrize("own", [False, True], ids=["another's", "ours, changed since"])
def test_an_entry_of_the_user_is_replaced_only_when_asked(
    own: bool, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    if own:
        put("cursor", home, "--timeout", "9")
    path.write_text('{"mcpServers": {"fetch": {"command": "mine"}}}')
    shown = refusal(capsys, install, "fetch", "--client", "cursor")
    assert shown == f"{path} has another server 'fetch': give --replace, or another --name"
    assert "mine" in path.read_text()
    run(install, "fetch", "--client", "cursor", "--replace")
    assert "mine" not in path.read_text()


def test_an_entry_of_the_user_that_is_to_be_replaced_is_not_taken_for_ours(home: Path) -> None:
    """Not even where the change is cut short between its receipt and its entry."""
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"fetch": {"command": "mine"}}}')
    change = plan(target("cursor", home), Configured("fetch", "/bin/fetch"), replace=True)
    assert not change.record.entries["fetch"].is_of({"command": "mine"})


@pytest.mark.parametrize(
    ("own", "why"), [(False, "was not put there by install"), (True, "is not as install put it there")]
)
def test_an_entry_of_the_user_is_not_taken_out(
    own: bool, why: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    if own:
        put("cursor", home)
    path.write_text('{"mcpServers": {"fetch": {"command": "mine"}}}')
    shown = refusal(capsys, uninstall, "fetch", "--client", "cursor")
    assert shown == f"{path}: the server 'fetch' {why}: take it out by hand"
    assert "mine" in path.read_text()


def test_an_entry_that_was_changed_and_still_starts_the_server_is_taken_out(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    put("cursor", home)
    path.write_text(path.read_text().replace("[]", '["--timeout", "9"]'))
    run(uninstall, "fetch", "--client", "cursor")
    assert not path.exists()


def test_an_entry_that_was_pasted_is_taken_out(home: Path) -> None:
    put("cursor", home)
    path = home / ".cursor" / "mcp.json"
    (home / ".local" / "state" / "mcp-server-bundle" / "installed.json").unlink()
    run(uninstall, "fetch", "--client", "cursor")
    assert json.loads(path.read_text()) == {"mcpServers": {}}


def test_from_the_cache_of_uv_an_entry_is_taken_out_though_its_wheel_is_gone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("cursor", home)
    monkeypatch.setattr("sys.executable", f"{home}/.cache/uv/archive-v0/x1/bin/python")
    monkeypatch.setattr("shared.kit.installation._HERE", home)
    run(uninstall, "fetch", "--client", "cursor")
    assert not (home / ".cursor").exists()


def test_a_file_that_was_removed_by_hand_is_forgotten(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    put("cursor", home)
    path.write_text("")
    put("cursor", home)
    run(uninstall, "fetch", "--client", "cursor")
    assert path.read_text() == ""


def test_an_entry_of_nothing_is_one_as_well(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"fetch": null}}')
    assert "has another server 'fetch'" in refusal(capsys, install, "fetch", "--client", "cursor")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_pipe_in_place_of_the_file_is_not_waited_for(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".claude.json"
    os.mkfifo(path)
    assert refusal(capsys, install, "fetch", "--client", "claude-code") == f"{path}: is not a file"


@pytest.mark.parametrize("url", ["http://ann:hush@127.0.0.1:8000/mcp", "http://127.0.0.1:8000/mcp?key=hush"])
def test_a_url_with_a_secret_is_written_and_not_shown(
    url: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(install, "fetch", "--client", "cursor", "--url", url)
    assert "hush" not in capsys.readouterr().out
    assert url in (home / ".cursor" / "mcp.json").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="only there is a place where even root can't write")
def test_what_cant_be_remembered_is_not_installed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = home / ".local" / "state"
    state.parent.mkdir()
    state.symlink_to("/proc/nobody")
    refusal(capsys, install, "fetch", "--client", "claude-code")
    assert not (home / ".claude.json").exists()


def test_the_diff_moves_no_cursor(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".claude.json").write_text('{\n  "a\u202e\x9b31m": {}\n}', encoding="utf-8")
    run(install, "fetch", "--client", "claude-code", "--dry-run")
    assert not {"\u202e", "\x9b"} & set(capsys.readouterr().out)


def test_what_is_not_there_is_not_taken_out(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = refusal(capsys, uninstall, "fetch", "--client", "cursor")
    assert shown == f"{home / '.cursor' / 'mcp.json'} has no server 'fetch'"


def test_a_file_the_client_does_not_read_is_refused_and_left_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".claude.json"
    path.write_text("{\n  // mine\n}")
    shown = refusal(capsys, install, "fetch", "--client", "claude-code")
    assert shown.startswith(f"{path}: is not JSON: line 2, column 3")
    assert files(home) == [".claude.json", "work", "work/notes"]


def test_the_file_as_it_was_is_kept_for_its_owner_only(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text("{}")
    run(install, "fetch", "--client", "cursor")
    backup = Path(capsys.readouterr().out.partition("as it was: ")[2].splitlines()[0])
    assert backup.read_text() == "{}"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_of_the_backups_of_a_file_the_newest_are_kept(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    other = back_up(kept, tmp_path / "other" / "[mcp].json", b"other")
    made = [back_up(kept, tmp_path / "[mcp].json", str(number).encode()) for number in range(KEPT_BACKUPS + 3)]
    assert sorted(kept.iterdir()) == [other, *made[3:]]


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_mode_of_a_file_stays(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch(mode)
    path.chmod(mode)
    write_atomically(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such permissions")
def test_only_its_owner_reads_a_file_that_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.touch(0o644)
    made = disk.made(monkeypatch)
    write_atomically(path, b"new")
    assert made == [0o600]


@pytest.mark.skipif(sys.platform == "win32", reason="directories are not synced there")
def test_a_file_reaches_the_disk_and_then_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = disk.synced(monkeypatch)
    write_atomically(tmp_path / "made" / "x", b"new")
    assert synced == [3, ["x"]]


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="only root writes for others")
def test_the_owner_of_a_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    os.chown(path, 65534, 65533)
    write_atomically(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid, path.read_bytes()) == (65534, 65533, b"new")


def test_what_a_link_leads_to_is_written(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    write_atomically(link, b"new")
    assert (link.is_symlink(), (tmp_path / "real").read_bytes()) == (True, b"new")


def test_a_link_stays_one(home: Path) -> None:
    real = home / "dotfiles.json"
    real.write_text("{}")
    link = home / ".claude.json"
    link.symlink_to(real)
    put("claude-code", home)
    assert link.is_symlink()
    assert "fetch" in real.read_text()
    run(uninstall, "fetch", "--client", "claude-code")
    assert real.read_text() == "{}"


def test_servers_in_another_form_are_left_to_the_user(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text("mcp_servers = {}\n")
    shown = refusal(capsys, install, "fetch", "--client", "codex")
    assert shown.startswith(f"{path}: its servers are not tables [mcp_servers.NAME]")
    assert path.read_text() == "mcp_servers = {}\n"


def test_a_file_in_place_of_the_directory_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".cursor").touch()
    assert refusal(capsys, install, "fetch", "--client", "cursor").endswith("mcp.json: Not a directory")


def test_a_file_that_another_program_has_changed_meanwhile_is_left_alone(home: Path) -> None:
    spot = target("claude-code", home)
    spot.path.write_text("{}")
    change = plan(spot, SERVER, replace=False)
    spot.path.write_text('{"numStartups": 2}')
    with pytest.raises(ValueError, match="has just been changed by another program: try again"):
        change.make()
    assert spot.path.read_text() == '{"numStartups": 2}'


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit for the size of a file")
def test_a_failed_write_leaves_the_file_and_nothing_beside_it(home: Path) -> None:
    path = home / ".claude.json"
    path.write_text("{}")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, limits[1]))
    try:
        with pytest.raises(ValueError, match="File too large"):
            write_atomically(path, b"new and longer")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (path.read_text(), files(home)) == ("{}", [".claude.json", "work", "work/notes"])


def test_damaged_receipts_are_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    receipts = home / ".local" / "state" / "mcp-server-bundle" / "installed.json"
    receipts.parent.mkdir(parents=True)
    receipts.write_text("{")
    shown = refusal(capsys, install, "fetch", "--client", "cursor")
    assert shown == f"{receipts} is damaged: remove it, and take entries out by hand"


@pytest.mark.parametrize(
    ("system", "folder"),
    [("linux", ".local/state"), ("macos", "Library/Application Support"), ("windows", "AppData/Local")],
)
def test_receipts_are_kept_where_each_system_keeps_such_things(system: Any, folder: str, tmp_path: Path) -> None:
    assert state_folder(Machine(system, tmp_path, {})) == tmp_path / folder / "mcp-server-bundle"


@pytest.mark.parametrize(("option", "words"), [("--header", ["--header", "-hush"]), (None, ["hush"])])
def test_a_secret_is_known_by_its_place_whatever_it_looks_like(option: str | None, words: list[str]) -> None:
    entry = load_catalog().entry("fetch")
    secret = next(one for one in entry.arguments if one.secret).model_copy(update={"option": option})
    checked = check(entry.model_copy(update={"arguments": [secret]}), words, {}, bundled=False)
    assert checked.secrets == {words[-1]}


def test_receipts_have_no_secrets(home: Path) -> None:
    run(install, "fetch", "--header", "a.example=X-Key:hush", "--client", "cursor", "--env", "TOKEN=hush")
    assert "hush" in (home / ".cursor" / "mcp.json").read_text()
    assert "hush" not in (home / ".local" / "state" / "mcp-server-bundle" / "installed.json").read_text()
    assert Receipts(machine("linux", home)).of(home / ".cursor" / "mcp.json").made_file


def test_uninstall_takes_no_arguments_of_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    shown = refusal(capsys, uninstall, "fetch", "--timeout", "9", "--client", "cursor")
    assert shown == "it takes no '--timeout': the name of the server is enough"
