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


def test_what_a_scope_is_enough_for() -> None:
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


def test_what_a_tool_needs() -> None:
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


def test_what_a_resource_needs() -> None:
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


def test_of_several_beginnings_of_a_uri_the_longest_counts() -> None:
    found = Policy("a", Rules({"resource:x": scopes("short"), "resource:x://y": scopes("long")}))
    assert (found.scopes_of_resource("x://y/z"), found.scopes_of_resource("x://z")) == (
        scopes("long"),
        scopes("short"),
    )


def test_what_a_prompt_needs() -> None:
    assert (DB.scopes_of_prompt("audit"), DB.scopes_of_prompt("greet")) == (scopes("db:audit"), scopes("db:read"))


def test_what_a_principal_could_have() -> None:
    could = {
        ("alice", "db:read"): True,
        ("alice", "db:write"): False,
        ("bob", "db:write"): True,
        ("bob", "db:audit"): False,
        ("", "db:write"): True,
        ("carol", "db:audit"): True,
        ("carol", "db:write"): False,  # each of the two has to allow it
    }
    told = {(name, one): DB.allows(Principal(f"key of {name}", name), scopes(one)) for name, one in could}
    assert told == could
    assert DB.allows(None, ["db:write"])
    assert not DB.allows(None, ["db:audit"])


def test_a_principal_called_like_all_others_is_nobody_special() -> None:
    assert DB.entitlement(Principal("x", "*")) is RULES.principals["*"]


def test_an_error_names_all_that_is_needed() -> None:
    with pytest.raises(InsufficientScope) as caught:
        DB.require(alice(token="db:admin"), DB.scopes_of_tool("drop_table", WRITER))
    assert caught.value.data == {"scopes": ["db:admin", "db:write"]}


def test_enough_is_let_through_and_a_token_without_scopes_allows_nothing() -> None:
    for principal in (None, alice(), alice(token="db:read")):
        DB.require(principal, ["db:read"])
    with pytest.raises(InsufficientScope):
        Policy("db").require(alice(token=""), ["db:read"])


def test_all_scopes_of_a_server() -> None:
    found = DB.all_scopes([("query", READER), ("execute", WRITER), ("special", ToolOptions(scopes=["db:special"]))])
    admin = ["db:admin", "db:audit", "db:logs", "db:private", "db:read", "db:special", "db:write"]
    assert found == admin
    assert Policy("db").all_scopes([("query", READER)]) == ["db:read"]


def test_scopes_as_they_are_written() -> None:
    for written, found in (("a:read", "a:read"), ("a b", "a b"), (["a", "b"], "a b"), ([], ""), ("", "")):
        assert read_scopes(written) == scopes(found)
    for wrong in (1, None, ["a", 1], {"a": 1}, ["a b"], ['"'], ["ä"]):
        with pytest.raises(ValueError, match="scope"):
            read_scopes(wrong)
