"""Subscriptions at the server, and the subscribed URIs that contain a URI."""

from servers.gateway.bridge.watching.resources import MAX_LEVELS, find_covering

HELD = {"file:///a", "file:///a/b/", "memo://all", "file:///a/b/c.txt"}


COVERING = {
    "file:///a": ["file:///a"],
    "file:///a/b/c.txt": ["file:///a/b/c.txt", "file:///a", "file:///a/b/"],
    "file:///a/b/": ["file:///a/b/", "file:///a"],
    "file:///a/b": ["file:///a"],
    "file:///ab": [],
    "memo://all/1": ["memo://all"],
    "memo://": [],
    "": [],
}


def test_a_uri_is_covered_by_all_its_parents() -> None:
    assert {uri: [*find_covering(uri, HELD.__contains__)] for uri in COVERING} == COVERING


def test_only_the_first_levels_of_a_deep_uri_are_checked() -> None:
    seen: list[str] = []
    assert not [*find_covering("/" * 8_000, lambda uri: bool(seen.append(uri)))]
    assert len(seen) <= 2 * MAX_LEVELS + 1
