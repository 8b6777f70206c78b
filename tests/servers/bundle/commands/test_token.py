"""`token`: new, listed and revoked tokens."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from servers.bundle.program import main
from servers.bundle.tokens import EditableTokens
from shared.auth.tokens_file import TokensFile
from tests.servers.bundle.refusals import exit_code, refused

HAND_WRITTEN = '# ours\n[old]\ndigest = "sha256:' + "0" * 64 + '" # since May\n\n# the end\n'


@pytest.fixture
def path(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCP_TOKENS_FILE", str(own_home / "kept" / "tokens.toml"))
    return own_home / "kept" / "tokens.toml"


def token(*words: str) -> int:
    return exit_code(main, "token", *words)


def test_a_new_token_is_printed_and_only_its_digest_stored(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scopes = ("--scope", "sqlite:read", "--scope", "fetch:* filesystem:write")
    assert token("new", "ada@example.org", *scopes, "--expires", "30") == 0
    made, stderr = capsys.readouterr()
    assert made.strip() not in path.read_text()
    assert str(path) in stderr
    ada = TokensFile(path).owner_of(made.strip())
    assert ada is not None
    assert (ada.name, ada.scopes) == ("ada@example.org", frozenset({"sqlite:read", "fetch:*", "filesystem:write"}))
    end = (datetime.now(UTC) + timedelta(days=30)).timestamp()
    assert ada.expires == pytest.approx(end, abs=60)


def test_a_token_without_scopes_grants_everything_forever(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token("new", "bob")
    made, stderr = capsys.readouterr()
    assert stderr.startswith("it grants everything and never expires; ")
    bob = TokensFile(path).owner_of(made.strip())
    assert bob is not None
    assert (bob.scopes, bob.expires) == (None, None)
    # Only the owner can read the file.
    assert os.name != "posix" or path.stat().st_mode & 0o777 == 0o600
    assert not TokensFile(path).is_exposed
    assert list(path.parent.iterdir()) == [path]


def test_handwritten_lines_of_the_token_file_are_unchanged(path: Path) -> None:
    path.parent.mkdir()
    for newline in ("\n", "\r\n"):
        before = HAND_WRITTEN.replace("\n", newline).encode()
        path.write_bytes(before)
        token("new", "new")
        assert path.read_bytes().startswith(before)
        assert token("revoke", "new") == 0
        assert path.read_bytes().rstrip() == before.rstrip()


def test_a_revoked_token_has_no_owner(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token("new", "ada")
    ada = capsys.readouterr().out.strip()
    token("new", "bob")
    bob = capsys.readouterr().out.strip()
    assert token("revoke", "ada") == 0
    assert capsys.readouterr().err == f"revoked; servers that use {path} refuse the token within a second\n"
    tokens = TokensFile(path)
    assert tokens.owner_of(ada) is None
    assert tokens.owner_of(bob)


def test_token_list_shows_everything_but_the_tokens(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert token("list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []
    assert not path.exists()
    token("new", "ada", "--scope", "b:read", "--scope", "a:read", "--custom-scopes")
    ada = capsys.readouterr().out.strip()
    assert token("list", "--json") == 0
    shown = capsys.readouterr().out
    assert json.loads(shown) == [{"name": "ada", "scopes": ["a:read", "b:read"], "expires": None}]
    assert token("list") == 0
    shown += capsys.readouterr().out
    assert "a:read b:read" in shown
    assert ada not in shown


REFUSED = [
    (["new", "old"], "there is already a token 'old'"),
    (["new", "a b"], "one word"),
    (["new", "x", "--scope", 'a"b'], "is not a valid scope"),
    (["new", "x", "--scope", "nonsense"], "no server uses the scope nonsense; use SERVER:read, "),
    (["new", "x", "--scope", "filesytem:read"], "did you mean filesystem:read? (--custom-scopes accepts any)"),
    (["new", "x", "--expires", "0"], "--expires"),
    (["revoke", "nobody"], "there is no token 'nobody'"),
    ([], "required: ACTION"),
]


def test_refused_changes_leave_the_token_file_unchanged(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.parent.mkdir()
    path.write_text(HAND_WRITTEN)
    assert [words for words, reason in REFUSED if reason not in refused(capsys, main, "token", *words)] == []
    assert path.read_text() == HAND_WRITTEN
    # An invalid file is not changed.
    for text in (b"[old", b'[old]\ndigest = "mine"\n', b"\xff"):
        path.write_bytes(text)
        for words in (["new", "x"], ["revoke", "old"], ["list"]):
            assert token(*words) == 2
            assert str(path) in capsys.readouterr().err
        assert path.read_bytes() == text
    # A valid file in another layout is left to its author.
    path.write_text('old.digest = "sha256:' + "0" * 64 + '"\n')
    assert "edit the file by hand" in refused(capsys, main, "token", "revoke", "old")


def test_concurrently_made_tokens_are_all_stored(path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda name: EditableTokens(path).create(name, None, None), "abcdefgh"))
    tokens = TokensFile(path)
    assert [one.name for one in map(tokens.owner_of, made) if one is not None] == list("abcdefgh")
