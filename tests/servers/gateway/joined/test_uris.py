"""URIs with the prefix of their member."""

import pytest

from servers.gateway.joined.uris import qualified_uri, rename_uris, split_uri

FULL = {
    "prompt://hello": "prompt://team__hello",
    "prompt://{name}": "prompt://team__{name}",
    "file:///a__b.txt": "file://team__/a__b.txt",
    "urn:isbn:1": "urn:team__isbn:1",
    "plain": "team__plain",
    "{+uri}": "team__{+uri}",
}


@pytest.mark.parametrize(("own", "full"), FULL.items())
def test_a_full_uri_contains_the_member_and_its_own_uri(own: str, full: str) -> None:
    assert qualified_uri("team", own) == full
    assert split_uri(full) == ("team", own)


@pytest.mark.parametrize("uri", ["https://example.org/a__b", "HTTP://team__x/", "prompt://hello", "", "a_b://c"])
def test_http_uris_are_never_prefixed(uri: str) -> None:
    assert split_uri(uri) == ("", uri)
    if uri[:4].lower() == "http":
        assert qualified_uri("team", uri) == uri


def test_a_result_is_copied_only_if_a_uri_changes() -> None:
    link = {"type": "resource_link", "uri": "a", "name": "x"}
    result = {
        "content": [
            {"type": "text", "text": "a", "uri": "a"},
            link,
            {"type": "resource", "resource": {"uri": "a"}},
            5,
        ],
        "messages": [{"role": "user", "content": link}, {"content": [link]}, None],
        "contents": [{"uri": "a"}, {"uri": 5}],
    }
    assert rename_uris(result, str) is result
    changed = rename_uris(result, str.upper)
    assert changed["content"][0] == result["content"][0]
    assert [changed["content"][1]["uri"], changed["content"][2]["resource"]["uri"]] == ["A", "A"]
    assert [changed["messages"][0]["content"]["uri"], changed["messages"][1]["content"][0]["uri"]] == ["A", "A"]
    assert changed["contents"] == [{"uri": "A"}, {"uri": 5}]
