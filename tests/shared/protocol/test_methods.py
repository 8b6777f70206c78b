"""Methods of each version, compared with the lists of the specification."""

from shared.protocol.identity import Identity
from shared.protocol.methods import REQUESTS, Method, method_table
from shared.protocol.types.base import Implementation, Params
from shared.protocol.versions import HANDSHAKE_VERSIONS, V2025_06_18, V2026_07_28, VERSIONS
from tests import schemas

COMMON = {
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
}
HANDSHAKE = COMMON | {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
STATELESS = COMMON | {"server/discover", "subscriptions/listen"}
EVERYTHING = {
    "tools": {},
    "prompts": {},
    "resources": {"subscribe": True},
    "completions": {},
    "logging": {},
}


def names(version, capabilities=EVERYTHING, custom=()):
    identity = Identity(Implementation(name="a", version="1"), capabilities=capabilities)
    return {name for name, its_version in method_table(identity, (*REQUESTS, *custom)) if its_version is version}


def test_each_era_has_its_methods():
    expected = {**dict.fromkeys(HANDSHAKE_VERSIONS, HANDSHAKE), V2026_07_28: STATELESS}
    assert {version: names(version) for version in VERSIONS} == expected


@schemas.requires_spec
def test_the_official_schema_has_the_same_methods_and_tasks():
    for version in VERSIONS:
        official = schemas.members(version.date, "ClientRequest")
        assert {name for name in official if not name.startswith("tasks/")} == names(version)


def test_methods_need_their_capability():
    needed = {
        "tools": "tools/call",
        "prompts": "prompts/get",
        "resources": "resources/read",
        "completions": "completion/complete",
        "logging": "logging/setLevel",
    }
    for capability, method in needed.items():
        rest = {name: value for name, value in EVERYTHING.items() if name != capability}
        assert method not in names(V2025_06_18, rest)


def test_resources_subscribe_needs_its_own_capability():
    assert "resources/subscribe" not in names(V2025_06_18, {"resources": {"subscribe": False}})


def test_servers_without_capabilities_have_only_the_base_methods():
    assert names(V2025_06_18, {}) == {"initialize", "ping"}
    assert names(V2026_07_28, {}) == {"server/discover", "subscriptions/listen"}


def test_custom_methods_exist_only_in_their_versions():
    added = Method("org.example/own", Params, first=V2026_07_28)
    assert "org.example/own" in names(V2026_07_28, custom=[added])
    assert "org.example/own" not in names(V2025_06_18, custom=[added])


def test_multi_round_methods_are_those_of_the_specification():
    assert {row.name for row in REQUESTS if row.multi_round} == {"tools/call", "prompts/get", "resources/read"}


def test_cacheable_methods_are_those_of_the_specification():
    lists = {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}
    assert {row.name for row in REQUESTS if row.cacheable} == lists | {"server/discover", "resources/read"}
