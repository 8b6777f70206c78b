import pytest

from shared.client.auth.challenges import parse_challenges, pick_challenge

CASES = {
    "Bearer": [("bearer", {})],
    'Bearer realm="a, b", scope=read': [("bearer", {"realm": "a, b", "scope": "read"})],
    'Basic realm="x", Bearer error="invalid_token"': [
        ("basic", {"realm": "x"}),
        ("bearer", {"error": "invalid_token"}),
    ],
    'Negotiate YWJj==, DPoP algs="ES256"': [("negotiate", {}), ("dpop", {"algs": "ES256"})],
    r'Bearer error_description="say \"no\""': [("bearer", {"error_description": 'say "no"'})],
    "Bearer SCOPE = a , scope=b": [("bearer", {"scope": "a"})],
    "Bearer resource_metadata=https://a.example/b?c=d, scope=e": [
        ("bearer", {"resource_metadata": "https://a.example/b?c=d", "scope": "e"})
    ],
    "Basic, Bearer": [("basic", {}), ("bearer", {})],
    'Bearer scope="unended': [("bearer", {})],
    "=": [],
    "": [],
}


@pytest.mark.parametrize("header", CASES)
def test_a_www_authenticate_header_is_parsed_into_challenges(header: str) -> None:
    assert [(one.scheme, dict(one.parameters)) for one in parse_challenges(header)] == CASES[header]


def test_dpop_is_preferred_to_bearer() -> None:
    picked = pick_challenge('Bearer scope="a b", DPoP scope="c d"')
    assert picked is not None
    assert (picked.scheme, picked.scopes) == ("dpop", ("c", "d"))


def test_a_header_of_a_million_characters_is_parsed() -> None:
    assert pick_challenge("a" * 1_000_000) is None
    assert pick_challenge('Bearer a="' + "\\" * 1_000_000) is not None
