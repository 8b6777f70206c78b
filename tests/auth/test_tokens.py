"""Static tokens by table."""

import pytest

from shared.auth.tokens import Tokens
from shared.protocol.http.rules import Headers, Refusal

TOKENS = Tokens(["secret-one", "secret-two"])


@pytest.mark.parametrize(
    ("headers", "challenge"),
    [
        ({"authorization": "Bearer secret-one"}, None),
        ({"authorization": "bearer  secret-two"}, None),
        ({"x-api-key": "secret-one"}, None),
        ({}, "Bearer"),
        ({"authorization": "Basic c2VjcmV0"}, "Bearer"),
        ({"authorization": "secret-one"}, "Bearer"),
        ({"authorization": "Bearer"}, 'Bearer error="invalid_token"'),
        ({"authorization": "Bearer secret-on"}, 'Bearer error="invalid_token"'),
        ({"authorization": "Bearer SECRET-ONE"}, 'Bearer error="invalid_token"'),
        ({"x-api-key": "wrong"}, 'Bearer error="invalid_token"'),
        ({"x-api-key": ""}, 'Bearer error="invalid_token"'),
        ({"authorization": "Bearer wrong", "x-api-key": "secret-one"}, 'Bearer error="invalid_token"'),
        ({"authorization": "Bearer \u00e9"}, 'Bearer error="invalid_token"'),
    ],
)
def test_who_is_admitted(headers: dict[str, str], challenge: str | None) -> None:
    admitted = TOKENS.admit(Headers(headers))
    if challenge is None:
        assert isinstance(admitted, str)
        assert "secret" not in admitted
    else:
        assert isinstance(admitted, Refusal)
        assert admitted.status == 401
        assert admitted.headers == (("www-authenticate", challenge),)


def test_principals_differ_and_last() -> None:
    one = TOKENS.admit(Headers({"x-api-key": "secret-one"}))
    assert one == Tokens(["secret-one"]).admit(Headers({"authorization": "Bearer secret-one"}))
    assert one != TOKENS.admit(Headers({"x-api-key": "secret-two"}))


def test_without_tokens_everybody_is_nobody() -> None:
    assert Tokens([]).admit(Headers({})) is None


@pytest.mark.parametrize("token", ["", "  "])
def test_an_empty_token_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="empty token"):
        Tokens([token])
