"""Where a database is, as an operator writes it."""

import pytest

from servers.postgres.engine.target import parse_target

TARGETS = [
    ("postgresql://host/shop", "shop", False),
    ("postgres://host/shop:rw", "shop", True),
    ("mine=postgresql://host/shop", "mine", False),
    ("mine=postgresql://user:rw@host/shop", "mine", False),
    ("mine=postgresql://host:5433/shop?sslmode=require:rw", "mine", True),
    ("service=work", "work", False),
    ("mine=service=work:rw", "mine", True),
    ("postgresql://shop@host", "shop", False),
    ("postgresql://a,b:5433/my%20shop", "my_shop", False),
]


def test_a_database_has_a_name_and_a_mode() -> None:
    found = [(given, parse_target(given, False)) for given, *_ in TARGETS]
    assert [(given, target.name, target.writable) for given, target in found] == TARGETS


def test_a_mode_of_its_own_counts_more() -> None:
    assert not parse_target("postgresql://host/shop:ro", True).writable


def test_what_is_no_url_is_refused_and_not_repeated() -> None:
    for given in (
        "",
        "shop",
        "x=shop",
        "host=h password=secret",
        "postgresql://u:se#cret@h:secret/x",
        "postgresql://u:sec/ret@h/x",
        "postgresql://u:sec@ret@h/x",
        "postgresql://u:%zzsecret@h/x",
    ):
        with pytest.raises(ValueError, match=r"given neither as|not well formed") as caught:
            parse_target(given, False)
        assert "ret" not in str(caught.value)


def test_a_password_is_not_shown() -> None:
    target = parse_target("postgresql://u:secret@h/x", False)
    assert target.conninfo["password"] == "secret"
    assert "secret" not in f"{target!r} {target}"
