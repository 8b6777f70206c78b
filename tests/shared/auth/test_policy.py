"""Required scopes, and the scopes of principals, by table."""

import pytest

from shared.auth.policy import Entitlement, Policy, Rules, grants, parse_scopes
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


def test_a_scope_grants_itself_and_weaker_scopes() -> None:
    enough = {
        ("files:read", "files:read"): True,
        ("files:read", "files:write"): False,
        ("files:write", "files:read"): True,
        ("files:read", "web:read"): False,
        ("files:*", "files:write"): True,
        ("files:*", "files:admin:keys"): True,
        ("files:admin:*", "files:read"): False,
        ("*", "files:write"): True,
        ("files:*", "filesystem:read"): False,
        ("files", "files:read"): False,
        ("", "files:read"): False,
        ("", ""): True,
        ("a:read b:read", "a:read b:read"): True,
        ("a:read", "a:read b:read"): False,
        ("web:write", "web:readonly"): False,
        ("read", "*"): False,
    }
    assert {(held, needed): grants(scopes(held), scopes(needed)) for held, needed in enough} == enough


def test_scopes_of_a_tool_come_from_rules_and_options() -> None:
    needs: list[tuple[str, ToolOptions | None, str]] = [
        ("query", READER, "db:read"),
        ("execute", WRITER, "db:write"),
        ("unheard_of", None, "db:write"),
        ("drop_table", WRITER, "db:admin db:write"),
        ("drop_table", ToolOptions(scopes=["other"]), "db:admin db:write"),
        ("ping", WRITER, ""),
        ("special", ToolOptions(scopes=["db:special"]), "db:special"),
    ]
    assert [DB.scopes_of_tool(name, tool) for name, tool, _ in needs] == [scopes(needed) for *_, needed in needs]


def test_scopes_of_a_resource_come_from_the_prefix_of_its_uri() -> None:
    needs = dict.fromkeys(("db://shop/orders", "logs://today", "file:///data/open.txt", "urn:a:b"), "db:read")
    needs |= dict.fromkeys(("log://today", "LOG://today"), "db:logs")
    needs |= dict.fromkeys(("file:///data/private/a", "File:///data/private/a"), "db:private")
    unsure = (
        *("file:///data/%70rivate/a", "file:///data/open/../private/a", "file:///data/open/%2e%2e/private/"),
        *("file:///data/./private//a", "file:////data/private/a", "file://LOCALHOST/data/private/a"),
        "file:///data/private/../open",
    )
    needs |= dict.fromkeys(unsure, "db:read db:private")
    assert {uri: DB.scopes_of_resource(uri) for uri in needs} == {
        uri: scopes(needed) for uri, needed in needs.items()
    }


def test_the_longest_matching_prefix_of_a_uri_sets_its_scopes() -> None:
    found = Policy("a", Rules({"resource:x": scopes("short"), "resource:x://y": scopes("long")}))
    assert (found.scopes_of_resource("x://y/z"), found.scopes_of_resource("x://z")) == (
        scopes("long"),
        scopes("short"),
    )


def test_scopes_of_a_prompt_come_from_rules() -> None:
    assert (DB.scopes_of_prompt("audit"), DB.scopes_of_prompt("greet")) == (scopes("db:audit"), scopes("db:read"))


def test_entitlements_of_a_principal_come_from_rules() -> None:
    could = {
        ("alice", "db:read"): True,
        ("alice", "db:write"): False,
        ("bob", "db:write"): True,
        ("bob", "db:audit"): False,
        ("", "db:write"): True,
        ("carol", "db:audit"): True,
        ("carol", "db:write"): False,  # both the rule and the token must allow it
    }
    allowed = {(name, one): DB.allows(Principal(f"key of {name}", name), scopes(one)) for name, one in could}
    assert allowed == could
    assert DB.allows(None, ["db:write"])
    assert not DB.allows(None, ["db:audit"])


def test_a_principal_named_like_the_default_rule_gets_the_default_rule() -> None:
    assert DB.entitlement(Principal("x", "*")) is RULES.principals["*"]


def test_an_insufficient_scope_error_names_all_required_scopes() -> None:
    with pytest.raises(InsufficientScope) as caught:
        DB.require(alice(token="db:admin"), DB.scopes_of_tool("drop_table", WRITER))
    assert caught.value.data == {"scopes": ["db:admin", "db:write"]}


def test_sufficient_scopes_are_allowed_and_an_empty_scope_is_refused() -> None:
    for principal in (None, alice(), alice(token="db:read")):
        DB.require(principal, ["db:read"])
    with pytest.raises(InsufficientScope):
        Policy("db").require(alice(token=""), ["db:read"])


def test_all_scopes_lists_the_scopes_of_tools_and_rules() -> None:
    found = DB.all_scopes([("query", READER), ("execute", WRITER), ("special", ToolOptions(scopes=["db:special"]))])
    admin = ["db:admin", "db:audit", "db:logs", "db:private", "db:read", "db:special", "db:write"]
    assert found == admin
    assert Policy("db").all_scopes([("query", READER)]) == ["db:read"]


def test_scopes_are_read_from_a_string_or_a_list() -> None:
    for written, found in (("a:read", "a:read"), ("a b", "a b"), (["a", "b"], "a b"), ([], ""), ("", "")):
        assert parse_scopes(written) == scopes(found)
    for wrong in (1, None, ["a", 1], {"a": 1}, ["a b"], ['"'], ["ä"]):
        with pytest.raises(ValueError, match="scope"):
            parse_scopes(wrong)
