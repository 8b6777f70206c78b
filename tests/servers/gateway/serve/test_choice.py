"""The servers that `serve` chooses, and the file of settings."""

import sys
from pathlib import Path
from typing import Any

import pytest

from servers.catalog import CATALOG, Catalog, load_catalog
from servers.gateway.serve.choice import ChosenServer, choose_servers
from servers.gateway.serve.configuration import OPTIONS, Configuration, read_configuration
from tests.servers.gateway.serve.test_third_party import written

OURS = load_catalog(CATALOG)


def chosen(folder: Path, text: str, *names: str, catalog: Catalog = OURS) -> list[ChosenServer]:
    return choose_servers(names, catalog, read_configuration(written(folder, text)))


def settings(folder: Path, text: str) -> Any:
    """The settings of the only server in a file."""
    (one,) = chosen(folder, text)
    return one.settings


# The file


def test_options_and_settings_are_read_under_either_spelling(tmp_path: Path) -> None:
    text = "port: 81\nlog-level: debug\nno-page: true\nallowed_host: [a, b]\n"
    text += "servers:\n  sqlite: {demo: true, max-rows: 5}\n  fetch:"
    read = read_configuration(written(tmp_path, text))
    assert {name: one.value for name, one in read.options.items()} == {
        "port": 81,
        "log_level": "debug",
        "allowed_host": ["a", "b"],
    }
    assert {name: one.value for name, one in read.workbench.items()} == {"no_page": True}
    sqlite, fetch = chosen(tmp_path, text)
    assert (sqlite.name, fetch.name) == ("sqlite", "fetch")
    assert (sqlite.settings.demo, sqlite.settings.max_rows) == (True, 5)


def test_relative_paths_start_at_the_directory_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "src").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    text = "token-file: token\nservers: {filesystem: {roots: [src, '~'], root: ['.:rw']}}"
    assert read_configuration(written(tmp_path, text)).options["token_file"].value == str(tmp_path / "token")
    files = settings(tmp_path, text)
    assert files.roots == [tmp_path / "src", tmp_path / "home"]
    assert files.directories[-1] == (tmp_path, True)
    db = settings(tmp_path, "servers: {sqlite: {db: ['a=b.db:rw', 'm=:memory:']}}")
    assert db.db == [f"a={tmp_path}/b.db:rw", "m=:memory:"]


def test_directories_for_other_machines_come_from_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for unset in (None, ""):
        if unset is not None:
            monkeypatch.setenv("MCP_FILESYSTEM_ROOTS", unset)
        with pytest.raises(
            ValueError, match=r"^filesystem: other machines can reach it, and no directory was chosen"
        ):
            choose_servers(["filesystem"], OURS, Configuration(), is_local=False)
    monkeypatch.setenv("MCP_FILESYSTEM_ROOTS", str(tmp_path))
    (found,) = choose_servers(["filesystem"], OURS, Configuration(), is_local=False)
    files: Any = found.settings
    assert (files.roots, found.defaults_note) == ([tmp_path], "")


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_SQLITE_MAX_ROWS", "7")
    assert settings(tmp_path, "servers: {sqlite: {demo: true, max_rows: 5}}").max_rows == 7


BAD_FILES = [
    ("prot: 1", "there is no option 'prot'; did you mean 'port'?"),
    ("transport: http", "there is no option 'transport'"),
    ("path: /x", "there is no option 'path'"),
    ("settings: other.yaml", "there is no option 'settings'"),
    ("max-reslt: 1\nservers: {}", "there is no option 'max-reslt'; did you mean 'max-result'?"),
    ("log-level: debug\nlog_level: info", "log_level is given twice"),
    ("port: 1\nport: 2", "'port' is given twice"),
    ("servers: {fetch: {}, fetch: {}}", "'fetch' is given twice"),
    ("[1, 2]", "must be a mapping of names to values"),
    ("servers: [fetch]", "servers: must be a mapping of names to values"),
    ("servers: {fetch: true}", "servers.fetch: must be a mapping of names to values"),
    ("servers: {fetch: {principal: {ada: {a: 1}}}}", "there is no option 'servers.fetch.principal.\"ada\".a'"),
    ("servers: {}", "servers: name at least one"),
    ("a: b: c", "line 1: it is not YAML: a string that contains a colon and a space needs quotes"),
    ("!!python/object/apply:os.getcwd []", "line 1: it has a tag (!...), which is not supported"),
    ('log-level: debug\nport: !!int ""', "line 2: it has a tag (!...), which is not supported"),
    ("servers: {filesystem: {roots: [{a: b}]}}", "servers.filesystem.roots: write a path"),
    ("servers: {filesystem: {roots: &r [*r]}}", "the alias 'r' is not defined before it"),
    ("servers: {sqlite: {demoo: true}}", "there is no option 'servers.sqlite.demoo'; did you mean 'demo'?"),
    ("servers: {sqlite: {demo: true, timeout: soon}}", "servers.sqlite.timeout: write a number"),
    ("servers: {filesystem: {roots: [none]}}", "servers.filesystem.roots: "),
    ("servers: {filesystem: {roots: ['~nobody-here/x']}}", "unknown home directory: '~nobody-here/x'"),
]


def test_an_invalid_file_is_refused_in_one_line(tmp_path: Path) -> None:
    for text, reason in BAD_FILES:
        with pytest.raises(ValueError, match=r"bundle\.yaml") as error:
            chosen(tmp_path, text)
        assert reason in str(error.value)
        assert len(str(error.value).splitlines()) == 1
    with pytest.raises(ValueError, match=r"^sqlite: specify at least one DATABASE, or --demo$"):
        chosen(tmp_path, "servers: {sqlite: {}}")
    with pytest.raises(ValueError, match="No such file"):
        read_configuration(tmp_path / "none.yaml")


def test_a_secret_in_a_world_readable_file_is_reported(tmp_path: Path) -> None:
    for mode, told in ((0o600, False), (0o640, True), (0o604, True)):
        path = written(tmp_path, "token: hunter2\nport: 1")
        path.chmod(mode)
        read = read_configuration(path)
        assert read.exposed(read.options, OPTIONS) == (f"{path}: token" if told else None)


# The servers


def test_the_defaults_without_a_file_serve_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = {one.name: one.settings for one in choose_servers([], OURS, Configuration())}
    assert list(found) == ["filesystem", "sqlite", "fetch", "prompts"]
    files: Any = found["filesystem"]
    assert ([path.resolve() for path in files.roots], files.writes) == ([tmp_path.resolve()], False)
    notes = [one.defaults_note for one in choose_servers([], OURS, Configuration()) if one.defaults_note]
    has = f"filesystem serves the current directory, read-only: {Path.cwd()}"
    assert notes == [f"{has}; set MCP_FILESYSTEM_ROOTS to serve others"]
    databases: Any = found["sqlite"]
    assert ([source.name for source in databases.sources], databases.writes) == (["demo"], False)


def test_only_named_servers_are_chosen(tmp_path: Path) -> None:
    names = [one.name for one in choose_servers(["fetch", "everything", "fetch"], OURS, Configuration())]
    assert names == ["fetch", "everything"]
    text = "servers: {sqlite: {demo: true}, fetch: {}, filesystem: {roots: [none]}}"
    assert [one.name for one in chosen(tmp_path, text, "fetch", "sqlite")] == ["sqlite", "fetch"]
    for read in (read_configuration(written(tmp_path, "servers: {fetch: {}}")), Configuration()):
        with pytest.raises(ValueError, match=r"there is no server 'fech'.*available: .*fetch"):
            choose_servers(["fech"], OURS, read)
    said = r"servers\.other: .* in the catalog; .*; a third-party server needs a command or a url"
    with pytest.raises(ValueError, match=said):
        chosen(tmp_path, "servers: {other: {}}")


def others(folder: Path, *entries: tuple[str, str]) -> Catalog:
    """A catalog of third-party servers, by name and module."""
    rest = "title: T, version: '1', summary: S, description: D, category: testing, transports: [http]"
    lines = [f"  - {{name: {name}, module: {module}, {rest}}}" for name, module in entries]
    path = folder / "catalog.yaml"
    path.write_text("\n".join(["servers:", *lines]))
    return load_catalog(path)


def package(folder: Path, name: str, code: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Create a third-party package with a server made of `code`; return its name."""
    (folder / name).mkdir()
    (folder / name / "server.py").write_text(code)
    monkeypatch.syspath_prepend(folder)
    return name


@pytest.mark.parametrize("code", ["raise RuntimeError('at import')", "import sys; sys.exit(3)", "import none_such"])
async def test_a_server_that_can_not_be_imported_fails_at_its_start(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = others(tmp_path, ("bad", package(tmp_path, "bad_server", code, monkeypatch)))
    monkeypatch.delitem(sys.modules, "bad_server", raising=False)
    (bad,) = chosen(tmp_path, "servers: {bad: {whatever: 1}}", catalog=catalog)
    with pytest.raises((RuntimeError, SystemExit, ImportError)):
        async with bad.app.open(bad.settings):
            pass


def test_a_module_without_a_server_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = others(tmp_path, ("empty", package(tmp_path, "empty_server", "app = 5", monkeypatch)))
    with pytest.raises(ValueError, match=r"empty: empty_server\.server has no server named app"):
        choose_servers([], catalog, Configuration())


def test_a_module_is_served_once(tmp_path: Path) -> None:
    catalog = others(tmp_path, ("one", "servers.everything"))
    assert [one.name for one in choose_servers([], catalog, Configuration())] == ["one"]
    catalog = others(tmp_path, ("one", "servers.everything"), ("two", "servers.everything"))
    with pytest.raises(ValueError, match=r"servers\.everything can be served only once"):
        choose_servers([], catalog, Configuration())
