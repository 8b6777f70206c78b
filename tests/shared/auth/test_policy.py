"""What is needed, and who has it, by table."""

import pytest

from shared.auth.policy import Entitlement, Policy, Rules, grants, read_scopes
from shared.errors import InsufficientScope
from shared.protocol.identity import Principal
from shared.server.tools import ToolOptions

READER = ToolOptions(read_only=True)
WRITER = ToolOptions()


def scopes(text: str) -> frozenset[str]:
    return frozenset(text.split())


def alice(*, token: str | None = None) -> Principal:
    return Principal("key of alice", "alice", None if token is None else scopes(token))


RULES = Rules(
    scopes={
        "drop_table": scopes("db:admin db:write"),
        "ping": frozenset(),
        "resource:log": scopes("db:logs"),
        "resource:file:///data/private/": scopes("db:private"),
        "prompt:audit": scopes("db:audit"),
    },
    principals={
        "alice": Entitlement((scopes("db:read"),)),
        "carol": Entitlement((scopes("db:*"), scopes("*:read db:audit"))),
        "*": Entitlement((scopes("db:read db:write"),)),
    },
)
DB = Policy("db", RULES)


@pytest.mark.parametrize(
    ("held", "needed", "enough"),
    [
        ("files:read", "files:read", True),
        ("files:read", "files:write", False),
        ("files:write", "files:read", True),
        ("files:read", "web:read", False),
        ("files:*", "files:write", True),
        ("files:*", "files:admin:keys", True),
        ("files:admin:*", "files:read", False),
        ("*", "files:write", True),
        ("files:*", "filesystem:read", False),
        ("files", "files:read", False),
        ("", "files:read", False),
        ("", "", True),
        ("a:read b:read", "a:read b:read", True),
        ("a:read", "a:read b:read", False),
        ("web:write", "web:readonly", False),
        ("read", "*", False),
    ],
)
def test_what_a_scope_is_enough_for(held: str, needed: str, enough: bool) -> None:
    assert grants(scopes(held), scopes(needed)) is enough


@pytest.mark.parametrize(
    ("name", "tool", "needed"),
    [
        ("query", READER, "db:read"),
        ("execute", WRITER, "db:write"),
        ("unheard_of", None, "db:write"),
        ("drop_table", WRITER, "db:admin db:write"),
        ("drop_table", ToolOptions(scopes=["other"]), "db:admin db:write"),
        ("ping", WRITER, ""),
        ("special", ToolOptions(scopes=["db:special"]), "db:special"),
    ],
)
def test_what_a_tool_needs(name: str, tool: ToolOptions | None, needed: str) -> None:
    assert DB.of_tool(name, tool) == scopes(needed)


@pytest.mark.parametrize(
    ("uri", "needed"),
    [
        ("db://shop/orders", "db:read"),
        ("log://today", "db:logs"),
        ("LOG://today", "db:logs"),
        ("logs://today", "db:read"),
        ("file:///data/open.txt", "db:read"),
        ("file:///data/private/a", "db:private"),
        ("file:///data/%70rivate/a", "db:read db:private"),
        ("file:///data/open/../private/a", "db:read db:private"),
        ("file:///data/open/%2e%2e/private/", "db:read db:private"),
        ("file:///data/./private//a", "db:read db:private"),
        ("file:////data/private/a", "db:read db:private"),
        ("file://LOCALHOST/data/private/a", "db:read db:private"),
        ("File:///data/private/a", "db:private"),
        ("file:///data/private/../open", "db:read db:private"),
        ("urn:a:b", "db:read"),
    ],
)
def test_what_a_resource_needs(uri: str, needed: str) -> None:
    assert DB.of_resource(uri) == scopes(needed)


def test_of_several_beginnings_of_a_uri_the_longest_counts() -> None:
    found = Policy("a", Rules({"resource:x": scopes("short"), "resource:x://y": scopes("long")}))
    assert (found.of_resource("x://y/z"), found.of_resource("x://z")) == (scopes("long"), scopes("short"))


def test_what_a_prompt_needs() -> None:
    assert (DB.of_prompt("audit"), DB.of_prompt("greet")) == (scopes("db:audit"), scopes("db:read"))


@pytest.mark.parametrize(
    ("name", "needed", "could"),
    [
        ("alice", "db:read", True),
        ("alice", "db:write", False),
        ("bob", "db:write", True),
        ("bob", "db:audit", False),
        ("", "db:write", True),
        ("carol", "db:audit", True),
        ("carol", "db:write", False),  # each of the two has to allow it
    ],
)
def test_what_a_principal_could_have(name: str, needed: str, could: bool) -> None:
    assert DB.could_have(Principal(f"key of {name}", name), scopes(needed)) is could


def test_nobody_in_particular_is_one_of_all_others() -> None:
    assert DB.could_have(None, ["db:write"])
    assert not DB.could_have(None, ["db:audit"])


def test_a_principal_called_like_all_others_is_nobody_special() -> None:
    assert DB.entitlement(Principal("x", "*")) is RULES.principals["*"]


def test_an_error_names_all_that_is_needed() -> None:
    with pytest.raises(InsufficientScope) as caught:
        DB.require(alice(token="db:admin"), DB.of_tool("drop_table", WRITER))
    assert caught.value.data == {"scopes": ["db:admin", "db:write"]}


@pytest.mark.parametrize("principal", [None, alice(), alice(token="db:read")])
def test_enough_is_let_through(principal: Principal | None) -> None:
    DB.require(principal, ["db:read"])


def test_a_token_without_scopes_allows_nothing() -> None:
    with pytest.raises(InsufficientScope):
        Policy("db").require(alice(token=""), ["db:read"])


def test_all_scopes_of_a_server() -> None:
    found = DB.supported([("query", READER), ("execute", WRITER), ("special", ToolOptions(scopes=["db:special"]))])
    admin = ["db:admin", "db:audit", "db:logs", "db:private", "db:read", "db:special", "db:write"]
    assert found == admin
    assert Policy("db").supported([("query", READER)]) == ["db:read"]


@pytest.mark.parametrize(
    ("written", "found"),
    [("a:read", "a:read"), ("a b", "a b"), (["a", "b"], "a b"), ([], ""), ("", "")],
)
def test_scopes_as_they_are_written(written: object, found: str) -> None:
    assert read_scopes(written) == scopes(found)


@pytest.mark.parametrize("written", [1, None, ["a", 1], {"a": 1}, ["a b"], ['"'], ["ä"]])
def test_what_is_no_scope_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="scope"):
        read_scopes(written)
