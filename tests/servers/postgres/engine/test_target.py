"""Databases as the operator writes them: URLs and keyword strings."""

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
    ("host=db dbname=shop user=u", "shop", False),
    ("mine=host=db dbname=shop:rw", "mine", True),
    ("host='a b' dbname = shop password='it\\'s':rw", "shop", True),
    ("dbname=shop password=se:rw", "shop", False),
    ("host=postgresql://h/shop", "host", False),
    ("user=service=work", "user", False),
    ("postgresql://shop@host", "shop", False),
    ("postgresql://a,b:5433/my%20shop", "my_shop", False),
    ("postgresql://?service=work", "work", False),
    ("postgresql://:rw", "postgres", True),
]


def test_a_database_has_a_name_and_a_mode() -> None:
    targets = [(given, parse_target(given, False)) for given, *_ in TARGETS]
    assert [(given, target.name, target.writable) for given, target in targets] == TARGETS


def test_ro_overrides_allow_write() -> None:
    assert not parse_target("postgresql://host/shop:ro", True).writable


def test_an_invalid_url_is_refused_without_being_quoted() -> None:
    for given in (
        "",
        "shop",
        "x=shop",
        "host=h password=sec ret",
        "host=h secret=ret",
        "host=h port=secret",
        "postgresql://u:se#cret@h:secret/x",
        "postgresql://u:sec/ret@h/x",
        "postgresql://u:sec@ret@h/x",
        "postgresql://u:%zzsecret@h/x",
    ):
        with pytest.raises(ValueError, match=r"given neither as|not well formed") as caught:
            parse_target(given, False)
        assert "ret" not in str(caught.value)


def test_the_repr_of_a_target_hides_the_password() -> None:
    target = parse_target("postgresql://u:secret@h/x", False)
    assert target.conninfo["password"] == "secret"
    assert "secret" not in f"{target!r} {target}"


@pytest.mark.parametrize(
    "given",
    [
        "  postgresql://u@h/shop\n",
        "'postgresql://u@h/shop'",
        '"postgresql://u@h/shop"',
        "shop='postgresql://u@h/shop'",
        "postgresql+psycopg2://u@h/shop",
        "postgresql+asyncpg://u@h/shop:ro",
        "postgres+psycopg://u@h/shop",
        "jdbc:postgresql://h/shop?user=u",
    ],
)
def test_url_prefixes_of_other_programs_are_accepted(given: str) -> None:
    target = parse_target(given, False)
    assert (target.name, target.conninfo) == ("shop", {"user": "u", "host": "h", "dbname": "shop"})


def test_url_parameters_of_other_programs_are_applied() -> None:
    query = "schema=sales&pgbouncer=true&statement_timeout=100&serverVersion=16&sslmode=require&lock_timeout=2s"
    target = parse_target(f"postgresql://u@h/shop?{query}", False)
    assert target.settings == {"search_path": "sales", "statement_timeout": "100", "lock_timeout": "2000"}
    assert (target.is_shared, target.unused, target.conninfo["sslmode"]) == (True, ("serverVersion",), "require")


def test_blanks_between_schemas_are_removed() -> None:
    target = parse_target("postgresql://u@h/shop?search_path=sales,%20public", False)
    assert target.settings == {"search_path": "sales,public"}


def test_the_ssl_parameter_of_asyncpg_sets_sslmode() -> None:
    target = parse_target("postgresql+asyncpg://u@h/shop?ssl=require", False)
    assert target.conninfo["sslmode"] == "require"


def test_extra_ampersands_are_ignored() -> None:
    assert parse_target("postgresql://u@h/shop?&sslmode=require&", False).conninfo["sslmode"] == "require"


def test_an_invalid_parameter_is_named_without_its_value() -> None:
    for query in ("passwort=secret", "statement_timeout=secret", "pgbouncer=secret", "schema=", "schema=secret,,x"):
        with pytest.raises(ValueError, match=query.partition("=")[0]) as caught:
            parse_target(f"postgresql://u@h/shop?{query}", False)
        assert "secret" not in str(caught.value)
        assert ("with an invalid value" in str(caught.value)) == (query != "passwort=secret")


def test_a_password_with_a_question_mark_is_refused_with_advice() -> None:
    with pytest.raises(ValueError, match="percent-encode") as caught:
        parse_target("postgresql://u:se?cret=x@h/shop", False)
    assert "cret" not in str(caught.value)


def test_a_url_of_another_database_system_is_refused_by_name() -> None:
    for given, word in (
        ("sqlite:///shop.db", "mcp-bundle-sqlite"),
        ("file:shop.db?mode=ro", "mcp-bundle-sqlite"),
        ("mysql+pymysql://u:secret@h/shop", r"mysql\+pymysql"),
    ):
        with pytest.raises(ValueError, match=word) as caught:
            parse_target(given, False)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ("ssl=true", "require"),
        ("ssl=false", "disable"),
        ("ssl=0", "disable"),
        ("ssl=no-verify", "require"),
        ("sslmode=no-verify", "require"),
    ],
)
def test_tls_has_the_values_of_other_clients(written: str, mode: str) -> None:
    assert parse_target(f"postgresql://h/shop?{written}", False).conninfo["sslmode"] == mode


def test_libpq_keyword_strings_are_parsed() -> None:
    target = parse_target(r"host=db port=5433 dbname='my shop' user=u password='se@c\'ret:rw' sslmode=require", False)
    expected = {"host": "db", "port": "5433", "dbname": "my shop", "user": "u", "sslmode": "require"}
    assert target.conninfo == {**expected, "password": "se@c'ret:rw"}
    assert (target.name, target.writable) == ("my_shop", False)
