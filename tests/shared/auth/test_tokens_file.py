"""Tokens in a file: owners, changes of the file, and invalid files."""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shared.auth.tokens import StaticTokens
from shared.auth.tokens_file import TokenFile, TokensFile, digest_of
from shared.protocol.http.rules import Denial, Headers, HttpRequest
from shared.protocol.identity import Principal

EXPIRES = datetime(2027, 1, 1, tzinfo=UTC)
ADA = f'["ada@example.org"]\ndigest = "{digest_of("hers")}"\nscopes = ["a:read", "b:*"]\n'
BOB = f'[bob]\ndigest = "{digest_of("his")}"\n'
EVE = f'[eve]\ndigest = "{digest_of("old")}"\nexpires = 2027-01-01T00:00:00Z\n'


class Place:
    """A file of tokens, and its clocks."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tokens.toml"
        self.clock = 0.0
        self.now = EXPIRES.timestamp() - 1

    def write(self, text: str) -> None:
        self.path.write_text(text)
        self.path.chmod(0o600)

    def open(self, text: str) -> TokensFile:
        self.write(text)
        return TokensFile(self.path, lambda: self.now, lambda: self.clock)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_token_gives_its_owner_and_scopes(place: Place) -> None:
    tokens = place.open(ADA + BOB)
    ada, bob = tokens.owner_of("hers"), tokens.owner_of("his")
    assert ada is not None
    assert (ada.name, ada.scopes, ada.expires) == ("ada@example.org", frozenset({"a:read", "b:*"}), None)
    assert bob is not None
    assert bob.scopes is None
    assert ada != bob
    assert not tokens.is_exposed
    assert tokens.owner_of("hers") is ada
    others = ("", "nobody's", digest_of("hers"), "hers ", "x" * 100_000)
    assert [tokens.owner_of(token) for token in others] == [None] * len(others)


def test_a_token_is_valid_until_it_expires(place: Place) -> None:
    tokens = place.open(EVE)
    eve = tokens.owner_of("old")
    assert eve is not None
    assert eve.expires == EXPIRES.timestamp()
    place.now += 1
    assert tokens.owner_of("old") is None


def test_a_changed_file_is_read_within_a_second(place: Place) -> None:
    tokens = place.open(ADA)
    place.write(BOB)
    assert tokens.owner_of("hers")
    place.clock = 1.0
    assert tokens.owner_of("hers") is None
    assert tokens.owner_of("his")


@pytest.mark.parametrize("broken", ["[ada", "[ada]\ndigest = 1\n"])
def test_tokens_of_a_broken_file_stay_valid_for_a_minute(
    place: Place, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    tokens = place.open(ADA)
    ada = tokens.owner_of("hers")
    place.write(broken)
    for second in (1.0, 2.0, 60.5):
        place.clock = second
        assert tokens.owner_of("hers") is ada
    assert "its tokens remain valid for 60 s" in caplog.text
    place.clock = 62.0
    assert tokens.owner_of("hers") is None
    assert ada is not None
    assert ada.is_revoked()
    assert len(caplog.records) == 2
    place.write(ADA)
    place.clock = 63.0
    assert tokens.owner_of("hers")


def test_tokens_of_a_deleted_file_become_invalid(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    tokens = place.open(ADA)
    place.path.unlink()
    place.clock = 1.0
    assert tokens.owner_of("hers")
    place.clock = 3.0
    assert tokens.owner_of("hers") is None
    assert "none of its tokens is valid until" in caplog.text


def test_a_replaced_file_keeps_its_tokens(place: Place) -> None:
    tokens = place.open(ADA)
    place.path.unlink()
    place.clock = 1.0
    assert tokens.owner_of("hers")
    place.write(ADA)
    for place.clock in (2.0, 4.0, 100.0):
        assert tokens.owner_of("hers")


def test_a_temporarily_unreadable_file_is_read_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    tokens = place.open(ADA)
    place.write(BOB)
    place.clock = 1.0
    with monkeypatch.context() as patching:
        patching.setattr(Path, "open", fail)
        assert tokens.owner_of("hers")
    place.clock = 2.0
    assert tokens.owner_of("hers") is None
    assert tokens.owner_of("his")


def test_breaking_a_file_repeatedly_does_not_extend_its_tokens(place: Place) -> None:
    tokens = place.open(ADA)
    for second in range(1, 70):
        place.write("[ada" + "a" * second)
        place.clock = float(second)
        assert (tokens.owner_of("hers") is not None) == (second < 61)


def test_the_owner_stays_the_same_when_the_token_is_replaced(place: Place) -> None:
    before = place.open(BOB).owner_of("his")
    after = place.open(BOB.replace(digest_of("his"), digest_of("new"))).owner_of("new")
    assert before is not None
    assert before == after


WRONG = {
    "no TOML": "[ada",
    "no table": "ada = 1",
    "no digest": "[ada]",
    "a token in place of its digest": '[ada]\ndigest = "hers"',
    "another digest": '[ada]\ndigest = "md5:abc"',
    "an unknown key": ADA + "scope = 'x'",
    "a scope that is none": BOB + 'scopes = ["a\\"b"]',
    "scopes that are none": BOB + "scopes = [1]",
    "a day": BOB + "expires = 2027-01-01",
    "no zone": BOB + "expires = 2027-01-01T00:00:00",
    "a name of two words": f'["a b"]\ndigest = "{digest_of("x")}"',
    "the same token twice": BOB + BOB.replace("bob", "rob"),
    "the same name twice": BOB + BOB,
}


def test_an_invalid_file_is_refused_with_a_one_line_error(place: Place) -> None:
    for what, text in WRONG.items():
        with pytest.raises(ValueError, match=r"tokens\.toml") as refused:
            place.open(text)
        assert "\n" not in str(refused.value), what


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_file_accessible_to_others_is_exposed(place: Place) -> None:
    place.write(ADA)
    for mode in (0o640, 0o604, 0o620, 0o602):
        place.path.chmod(mode)
        assert TokensFile(place.path).is_exposed


def sent(token: str) -> HttpRequest:
    return HttpRequest("POST", "/mcp", Headers({"authorization": f"Bearer {token}"}))


async def test_tokens_of_a_file_add_to_static_tokens(place: Place) -> None:
    tokens = StaticTokens(["static"], place.open(BOB))
    assert isinstance(await tokens.authenticate(sent("static")), Principal)
    assert isinstance(await tokens.authenticate(sent("his")), Principal)
    assert isinstance(await tokens.authenticate(sent("hers")), Denial)


async def test_with_an_empty_file_all_requests_are_denied(place: Place) -> None:
    denied = await StaticTokens([], place.open("")).authenticate(HttpRequest("POST", "/mcp", Headers({})))
    assert isinstance(denied, Denial)


async def test_a_new_token_in_a_single_token_file_replaces_the_old_one(place: Place) -> None:
    place.write("old\n")
    tokens = StaticTokens([], TokenFile(place.path, clock=lambda: place.clock))
    old = await tokens.authenticate(sent("old"))
    assert isinstance(old, Principal)
    place.write("newer\n")
    place.clock = 2.0
    assert isinstance(await tokens.authenticate(sent("newer")), Principal)
    assert isinstance(await tokens.authenticate(sent("old")), Denial)
    assert old.is_revoked is not None
    assert old.is_revoked()
