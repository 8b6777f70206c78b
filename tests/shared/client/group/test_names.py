"""Full names: unique, valid for every model, and reversible."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.client.group.names import check_server_name, full_name, may_be_shortened, own_name, split_name

MODELS_TAKE = re.compile(r"[A-Za-z0-9_-]{1,64}")
SERVERS = st.from_regex(r"[A-Za-z0-9-]{1,32}", fullmatch=True)


@pytest.mark.parametrize(
    ("server", "own", "full"),
    [
        ("files", "read_text_file", "files__read_text_file"),
        ("files", "a__b", "files__a__b"),
        ("files", "_hidden", "files___hidden"),
        ("files", "x" * 57, "files__" + "x" * 57),
        ("my-files", "copy", "my-files__copy"),
    ],
)
def test_a_valid_name_keeps_its_text_and_can_be_split(server: str, own: str, full: str) -> None:
    assert full_name(server, own) == full
    assert split_name(full) == (server, own)
    assert own_name(full, [own]) == own
    assert not may_be_shortened(own)


@pytest.mark.parametrize("own", ["x" * 58, "admin.tools/list", "naïve", "a b", "", "\ud83d", "🦊"])
def test_an_invalid_name_is_shortened_and_resolved(own: str) -> None:
    full = full_name("files", own)
    assert MODELS_TAKE.fullmatch(full)
    assert may_be_shortened(full)
    assert own_name(full, ["other", own]) == own
    assert own_name(full, ["other"]) is None


def test_the_form_of_a_shortened_name_is_stable() -> None:
    # Hosts keep such names in lists of what a user has allowed.
    assert full_name("files", "admin.tools/list") == "files__admintoolslist-d00e4cee60"


def test_an_exact_name_precedes_a_shortened_one() -> None:
    shortened = full_name("files", "admin.tools/list")
    short = split_name(shortened)[1]
    assert own_name(shortened, ["admin.tools/list", short, "admin.tools/list"]) == short


def test_similar_names_have_different_shortened_names() -> None:
    owns = ["a.b", "a/b", "ab", "x" * 100 + "1", "x" * 100 + "2"]
    assert len({full_name("files", own) for own in owns}) == len(owns)


@settings(max_examples=15)
@given(server=SERVERS, owns=st.lists(st.text(max_size=80), min_size=1, max_size=5, unique=True))
def test_every_full_name_is_valid_and_can_be_split(server: str, owns: list[str]) -> None:
    fulls = [full_name(server, own) for own in owns]
    assert all(MODELS_TAKE.fullmatch(full) for full in fulls)
    assert [own_name(full, owns) for full in fulls] == owns
    assert {split_name(full)[0] for full in fulls} == {server}


def test_invalid_server_names_are_refused() -> None:
    for name in ("", "a_b", "a.b", "a b", "x" * 33, "é", "a\n"):
        with pytest.raises(ValueError, match="letters, digits and hyphens"):
            check_server_name(name)


def test_a_name_without_a_server_is_refused() -> None:
    for name in ("", "tool", "a_b", "__tool", "a b__tool"):
        with pytest.raises(ValueError, match="must begin with the name of a server"):
            split_name(name)
