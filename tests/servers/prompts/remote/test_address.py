"""Addresses of git libraries."""

import pytest

from servers.prompts.remote.address import Address, parse_address

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("git+https://github.com/a/b.git", Address("https://github.com/a/b.git")),
        ("git+https://github.com/a/b@v1.2", Address("https://github.com/a/b", "v1.2")),
        ("git+https://h:8443/a@feature/x#subdirectory=p/q/", Address("https://h:8443/a", "feature/x", "p/q")),
        ("git+ssh://git@github.com/a/b.git@main", Address("ssh://git@github.com/a/b.git", "main")),
        ("git+file:///srv/a b".replace(" ", "%20"), Address("file:///srv/a%20b")),
        ("git+file:/srv/a", Address("file:///srv/a")),
        ("git+git://[::1]:9418/a", Address("git://[::1]:9418/a")),
    ],
)
def test_a_git_address_is_parsed(text: str, expected: Address) -> None:
    assert parse_address(text) == expected
    assert parse_address(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("https://github.com/a/b", "must have the form git+https://HOST"),
        ("git+http://h/a", "with one of these schemes: https, ssh, git, file"),
        ("git+ext::sh -c id", "must have the form"),
        ("git+https://h:port/a", "must have the form"),
        ("git+https://h/a?x=1", "must have the form"),
        ("git+https://h/a\n", "must have the form"),
        ("git+https://-oProxyCommand=id/a", "is not a host name"),
        ("git+ssh://-oProxyCommand=id@h/a", "is not a user name"),
        ("git+https://h", "names no repository"),
        ("git+file://host/a", "with its absolute path"),
        ("git+file:a", "with its absolute path"),
        ("git+https://h/a@--upload-pack=id", "is not the name of a branch"),
        ("git+https://h/a@x..y", "is not the name of a branch"),
        ("git+https://h/a@x:y", "is not the name of a branch"),
        ("git+https://h/a@", "is not the name of a branch"),
        ("git+https://h/a#p", "after #, only subdirectory=FOLDER"),
        ("git+https://h/a#subdirectory=../p", "is not a folder within"),
    ],
)
def test_an_invalid_address_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("+", r"\+")):
        parse_address(text)


@pytest.mark.parametrize("user", ["ada:do-not-show@", "do-not-show@", ":do-not-show@"])
def test_a_secret_is_refused_and_not_repeated(user: str) -> None:
    with pytest.raises(ValueError, match="credential helper") as raised:
        parse_address(f"git+https://{user}h/a")
    assert "do-not-show" not in str(raised.value)


def test_only_a_full_hash_is_a_commit() -> None:
    assert parse_address(f"git+https://h/a@{COMMIT}").commit == COMMIT
    assert parse_address(f"git+https://h/a@{COMMIT[:8]}").commit is None


def test_the_shown_address_hides_local_directories() -> None:
    assert parse_address("git+file:///home/ada/b.git@v1").shown == "git+file:///.../b@v1"
