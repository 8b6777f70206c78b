"""The denylist: its default names, and the operator's deny and allow patterns."""

import re
from pathlib import Path

from servers.common.files.denylist import HARMLESS, SECRETS, Denylist

README = Path(__file__).parents[4] / "servers/filesystem/README.md"


def is_denied(path, deny=(), allow=()):
    denylist = Denylist(deny, allow)
    return denylist.denies_path(denylist.start([()]), path.split("/"))


CLOSED = (
    *(".env", ".env.production", ".ENV", "a/b/.env", ".netrc", ".git-credentials", ".npmrc"),
    *(".ssh", ".ssh/config", "home/.ssh/known_hosts", ".aws/credentials", ".gnupg/x/y"),
    *("id_rsa", "id_rsa.old", "ID_ED25519", "server.key", "a/cert.pem", "store.KDBX"),
)
OPEN = (
    *("env", "environment.py", ".envrc", "a.env.py", ".env.example", ".env.sample", "id_rsa.pub", "ssh/config"),
    *("pem", "pem.txt", "key", "keys.py", "monkey", ".github/x", "aws/credentials", "credentials.py", "secret.txt"),
    *(".gitignore", ".docker/Dockerfile", "\udcff", "\\.env", ""),
)


def test_secrets_are_denied_and_other_names_are_not():
    assert [path for path in CLOSED if not is_denied(path)] == []
    assert [path for path in OPEN if is_denied(path)] == []


def test_the_readme_lists_all_denied_names():
    section = README.read_text().split("## What stays closed\n\n")[1].split("\n\n")[0]
    assert sorted(re.findall(r"`(.+?)`", section)) == sorted([*SECRETS, *HARMLESS])


DENIED = {
    "private": {"private": True, "a/private/b": True, "privates": False},
    "private/": {"private/b": True},
    "Private": {"pRIVATE": True},
    "*.log": {"a/b.LOG": True},
    "tmp*": {"a/tmp1/b": True},
    "a?c": {"abc": True},
    "{a,b}.txt": {"b.txt": True},
    "notes/private": {
        "notes/private/x": True,
        "NOTES/Private": True,
        "a/notes/private": False,
        "notes": False,
        "notes/b": False,
    },
    "**/notes/private": {"a/b/notes/private/x": True},
    "notes/**": {"notes/x": True, "notes": False},
}
ALLOWED = {
    ".env": {".env": False, "a/.env": False, ".ENV": True, ".env.local": True},
    "*.pem": {"a/b.pem": False},
    "certs/*.pem": {"certs/b.pem": False, "b.pem": True},
    "certs": {"certs/b.pem": True},
    ".ssh": {".ssh/config": False, ".ssh/id_rsa": True},
    "*": {".ssh/id_rsa": False},
}


def test_deny_patterns_extend_the_denylist():
    assert {glob: {path: is_denied(path, [glob]) for path in paths} for glob, paths in DENIED.items()} == DENIED


def test_allow_patterns_open_default_denied_names():
    assert {
        glob: {path: is_denied(path, allow=[glob]) for path in paths} for glob, paths in ALLOWED.items()
    } == ALLOWED


def test_allow_patterns_do_not_override_deny_patterns():
    for allow in ("*", "**", ".env", "private", "a/private"):
        assert is_denied("a/private", ["private"], [allow])
        assert is_denied("a/.env", [".env"], [allow])


def test_deny_patterns_match_other_unicode_forms_of_accents():
    deny = ["Jos\u00e9*", "a/\u00c9*"]
    for name in ("Jos\u00e9.txt", "Jose\u0301.txt", "JOSE\u0301.txt", "a/e\u0301"):
        assert is_denied(name, deny)
    assert not is_denied("Jose.txt", deny)


def test_the_cache_of_the_denylist_is_limited():
    denylist = Denylist()
    way = denylist.start([()])
    for i in range(10_000):
        assert denylist.step(way, f"{i}.pem") is None
    assert denylist._is_denied.cache_info().currsize <= 4_096  # nothing else shows its size
