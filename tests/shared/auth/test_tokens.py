"""Static tokens by table."""

import pytest

from shared.auth.tokens import StaticTokens
from shared.protocol.http.rules import Denial, Headers, HttpRequest
from shared.protocol.identity import Principal


def sent(headers: dict[str, str]) -> HttpRequest:
    return HttpRequest("POST", "/mcp", Headers(headers))


TOKENS = StaticTokens(["secret-one", "secret-two"])


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
async def test_who_is_admitted(headers: dict[str, str], challenge: str | None) -> None:
    admitted = await TOKENS.authenticate(sent(headers))
    if challenge is None:
        assert isinstance(admitted, Principal)
        assert "secret" not in admitted.key
    else:
        assert isinstance(admitted, Denial)
        assert admitted.challenge == challenge


async def test_principals_differ_and_last() -> None:
    one = await TOKENS.authenticate(sent({"x-api-key": "secret-one"}))
    assert one == await StaticTokens(["secret-one"]).authenticate(sent({"authorization": "Bearer secret-one"}))
    assert one != await TOKENS.authenticate(sent({"x-api-key": "secret-two"}))


async def test_without_tokens_everybody_is_nobody() -> None:
    assert await StaticTokens([]).authenticate(sent({})) is None


@pytest.mark.parametrize("token", ["", "  "])
def test_an_empty_token_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="empty token"):
        StaticTokens([token])
