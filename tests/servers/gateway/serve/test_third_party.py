"""Third-party servers in a configuration file, and errors in their entries.

Environment and headers are private since they contain secrets; test_foreign_server.py checks that they arrive."""

import os
from pathlib import Path
from typing import Any

import pytest

from servers.catalog import CATALOG, load_catalog
from servers.common.machine import Machine
from servers.gateway.serve.choice import choose_servers
from servers.gateway.serve.configuration import read_configuration
from servers.gateway.serve.third_party import ThirdPartyServer, pins_path
from servers.gateway.serve.values import Value, read_env_file
from shared.program.process import Options

SECRET = "hunter2-hunter2"


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    return of_owner(folder, "bundle.yaml", text, mode)


def the_server(folder: Path, text: str, mode: int = 0o600) -> ThirdPartyServer:
    """The only third-party server of a file, with `text` as its entry."""
    path = written(folder, f"servers: {{other: {{{text}}}}}", mode)
    (one,) = read_configuration(path).third_party_servers().values()
    return one


def of_owner(folder: Path, name: str, text: str, mode: int = 0o600) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_command_is_a_list_or_a_shell_like_string(tmp_path: Path) -> None:
    for command in ("[run, 'a b', -c]", "run 'a b' -c"):
        assert the_server(tmp_path, f"command: {command}").settings.command == ["run", "a b", "-c"]
    # It starts where the file stands.
    (tmp_path / "there").mkdir()
    assert the_server(tmp_path, "command: run").directory == tmp_path
    assert the_server(tmp_path, "command: run, cwd: there").settings.cwd == tmp_path / "there"


def test_a_command_gets_variables_from_files_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_owner(tmp_path, "vars", f"# a comment\n\nexport A=1\nB = 'two words'\nKEY={SECRET}\nA2==\n")
    of_owner(tmp_path, "value", "of a file\n")
    monkeypatch.setenv("OURS", "of the environment")
    text = "command: run, env-file: vars, env: {B: text, C: {env: OURS}, D: {file: value}}"
    assert the_server(tmp_path, text)._environment() == {
        "A": "1",
        "A2": "=",
        "B": "text",
        "C": "of the environment",
        "D": "of a file",
        "KEY": SECRET,
    }


def test_a_url_gets_its_headers_and_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_owner(tmp_path, "token", f"{SECRET}\n")
    monkeypatch.setenv("OURS", "k")
    text = "url: 'https://example.org/mcp', token-file: token, headers: {X-Key: {env: OURS}, X-Tenant: acme}"
    headers = {"authorization": f"Bearer {SECRET}", "x-key": "k", "x-tenant": "acme"}
    assert the_server(tmp_path, text)._headers() == headers


def test_a_secret_file_is_read_at_each_use(tmp_path: Path) -> None:
    token = of_owner(tmp_path, "token", "old")
    one = the_server(tmp_path, "url: 'https://example.org/mcp', token-file: token")
    token.write_text("new")
    assert one._headers() == {"authorization": "Bearer new"}
    token.unlink()
    with pytest.raises(ValueError, match="No such file"):
        one._headers()


def test_rules_and_limits_are_read(tmp_path: Path) -> None:
    tools = "tools: {allow: [a, 'b_*'], deny: [c], rename: {a: x}, describe: {a: A tool.}}"
    one = the_server(tmp_path, f"command: run, {tools}, max-result: 2048, max-seconds: 1.5, pin: true, shared: true")
    rules = one.rules
    assert (rules.allow, rules.deny, rules.rename, rules.describe) == (
        ("a", "b_*"),
        ("c",),
        {"a": "x"},
        {"a": "A tool."},
    )
    assert (rules.result_bytes, rules.seconds) == (2048, 1.5)
    assert (one.settings.pin, one.upstream.shares_session, one.upstream.name) == (True, True, "other")


BAD = [
    ("command: run, urll: x", "there is no option 'servers.other.urll'; did you mean 'url'?"),
    ("command: run, url: 'https://example.org/mcp'", "servers.other: specify either a command or a url"),
    ("command: []", "servers.other.command: List should have at least 1 item"),
    ("command: ''", "servers.other.command: List should have at least 1 item"),
    ('command: "run \'a"', "servers.other.command: No closing quotation"),
    ("url: example.org", "servers.other.url: the URL of a server must start with http://"),
    (f"url: 'https://me:{SECRET}@example.org'", "servers.other.url: everyone who sees the URL sees its user name"),
    ("command: run, token: t", "servers.other: token is only for a url"),
    ("url: 'https://example.org', env: {}", "servers.other: env is only for a command"),
    ("url: 'https://example.org', cwd: x", "servers.other: cwd is only for a command"),
    ("command: run, cwd: none", "none is not a directory"),
    (
        "url: 'https://example.org', token: t, token-file: t",
        "servers.other: token and token-file set the same thing: use only one",
    ),
    (
        "url: 'https://example.org', token: t, headers: {Authorization: x}",
        "token and Authorization set the same thing: use only one",
    ),
    ("url: 'https://example.org', token-file: none", "No such file"),
    ("command: run, env-file: none", "No such file"),
    ("command: run, env-file: broken", "broken: line 2: expected NAME=VALUE"),
    ("command: run, env: {A: 1}", "servers.other.env: A: must be a string (numbers in quotes), {env: NAME} or"),
    ("command: run, env: {A: {env: NONE_SUCH}}", "the environment variable NONE_SUCH is not set"),
    ("command: run, env: {A: {env: X, file: y}}", "servers.other.env: A: must be a string"),
    ("command: run, env: [A]", "servers.other.env: must be a mapping of names to values"),
    ("url: 'https://example.org', headers: {A: {file: none}}", "No such file"),
    ("url: 'https://example.org', headers: {'A b': x}", "not the name of an HTTP header that can be set: 'a b'"),
    (f'url: "https://example.org", headers: {{A: "{SECRET}\\n"}}', "the value of the HTTP header a has characters"),
    ("command: run, tools: [a]", "servers.other.tools: must be a mapping of allow, deny, rename and describe"),
    ("command: run, tools: {alow: [a]}", "there is no option 'servers.other.tools.alow'; did you mean 'allow'?"),
    ("command: run, tools: {allow: a}", "servers.other.tools.allow: write a list, such as [A, B]"),
    ("command: run, tools: {rename: {a: 'x y'}}", "servers.other.tools: rename: 'x y' is not a valid name"),
    ("command: run, max-seconds: 0", "servers.other.max-seconds: it must be greater than 0"),
    ("command: run, max-result: 5", "servers.other.max-result: it must be greater than or equal to 1024"),
    ("command: run, pin: maybe", "servers.other.pin: write true or false"),
]


def test_an_error_is_one_line_without_secrets(tmp_path: Path) -> None:
    of_owner(tmp_path, "broken", f"A=1\n{SECRET}\n")
    for text, reason in BAD:
        with pytest.raises(ValueError, match=r"bundle\.yaml: ") as error:
            the_server(tmp_path, text)
        said = str(error.value)
        assert reason in said
        assert (len(said.splitlines()), said.count("bundle.yaml: "), SECRET in said) == (1, 1, False)


NAMES = [
    ("a_b", "a server's name must have 1 to 32 letters, digits and hyphens, not 'a_b'"),
    ("a/b", "a server's name must have 1 to 32 letters, digits and hyphens"),
    ("joined", "this name is reserved for the joined servers"),
    ("fetch", "this is the name of a server in the catalog"),
]


def test_an_invalid_name_is_refused(tmp_path: Path) -> None:
    for name, reason in NAMES:
        read = read_configuration(written(tmp_path, f"servers: {{'{name}': {{command: run}}}}"))
        with pytest.raises(ValueError, match=rf"bundle\.yaml: servers.*{reason}"):
            choose_servers([], load_catalog(CATALOG), read)


LINES = [
    ("url: 'https://example.org', token: t", ".token"),
    ("url: 'https://example.org', headers: {X-Api-Key: k, X-Tenant: acme}", ".headers.X-Api-Key"),
    ("command: run, env: {LANG: C, GITHUB_TOKEN: t}", ".env.GITHUB_TOKEN"),
    ("command: run, env: {LANG: C}", None),
]


def test_a_secret_in_a_world_readable_file_is_reported(tmp_path: Path) -> None:
    for text, said in LINES:
        assert the_server(tmp_path, text).exposed is None
        exposed = the_server(tmp_path, text, 0o644).exposed
        assert exposed == (said and f"{tmp_path / 'bundle.yaml'}: servers.other{said}")
    url = "url: 'https://example.org'"
    # Or in a file that is named there.
    for text in (
        f"{url}, token-file: kept",
        f"{url}, headers: {{A: {{file: kept}}}}",
        "command: run, env-file: kept",
    ):
        of_owner(tmp_path, "kept", "A=1")
        assert the_server(tmp_path, text).exposed is None
        of_owner(tmp_path, "kept", "A=1", 0o644)
        assert the_server(tmp_path, text).exposed is not None


def test_servers_keep_the_order_of_the_file(tmp_path: Path) -> None:
    text = "servers: {fetch: {}, other: {command: run, max-seconds: 90, max-result: 5000}, prompts: {}}"
    found = choose_servers([], load_catalog(CATALOG), read_configuration(written(tmp_path, text)))
    assert [one.name for one in found] == ["fetch", "other", "prompts"]
    found[1].apply_limits(Options())
    assert (found[1].app.budget.seconds, found[1].app.budget.result_bytes) == (90, 5_000)
    (only,) = choose_servers(["other"], load_catalog(CATALOG), read_configuration(written(tmp_path, text)))
    assert only.name == "other"


def test_values_in_files_are_trimmed_and_unquoted(tmp_path: Path) -> None:
    """An empty file is refused; only paired quotes are removed."""
    of_owner(tmp_path, "empty", " \n")
    with pytest.raises(ValueError, match="is empty"):
        Value("file", "empty").current(tmp_path)
    path = of_owner(tmp_path, "vars", "A='x'\nB=\"y\"\nC='\nD=\"z'\nE=$HOME # no comment\n")
    read: Any = read_env_file(path)[0]
    assert read == {"A": "x", "B": "y", "C": "'", "D": "\"z'", "E": "$HOME # no comment"}


def test_pins_are_beside_the_configuration_or_in_the_users_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine("linux", tmp_path / "home", {})
    beside = tmp_path / "other.pins.json"
    assert pins_path(tmp_path / "bundle.yaml", "other", machine) == beside
    # Who runs the tests may be root, who may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    path = pins_path(tmp_path / "bundle.yaml", "other", machine)
    assert path.parent == tmp_path / "home/.local/state/mcp-server-bundle/pins"
    assert path.name.endswith("-other.pins.json")
    assert path != pins_path(tmp_path / "another.yaml", "other", machine)
    # Those that stand there count all the same.
    beside.write_text("{}")
    assert pins_path(tmp_path / "bundle.yaml", "other", machine) == beside
