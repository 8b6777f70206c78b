"""Static tokens, by table."""

import pytest

from shared.auth.tokens import StaticTokens
from shared.protocol.http.rules import Denial, Headers, HttpRequest
from shared.protocol.identity import Principal


def sent(headers: dict[str, str]) -> HttpRequest:
    return HttpRequest("POST", "/mcp", Headers(headers))


TOKENS = StaticTokens(["secret-one", "secret-two"])


async def test_a_static_token_gives_a_principal() -> None:
    for headers in (
        *({"authorization": value} for value in ("Bearer secret-one", "bearer  secret-two")),
        {"x-api-key": "secret-one"},
    ):
        admitted = await TOKENS.authenticate(sent(headers))
        assert isinstance(admitted, Principal)
        assert "secret" not in admitted.key


async def test_missing_or_wrong_static_tokens_are_denied() -> None:
    none: list[dict[str, str]] = [{}, {"authorization": "Basic c2VjcmV0"}, {"authorization": "secret-one"}]
    bearers = ("", " secret-on", " SECRET-ONE", " \u00e9")
    wrong = [{"authorization": f"Bearer{value}"} for value in bearers]
    wrong += [{"x-api-key": "wrong"}, {"x-api-key": ""}, {"authorization": "Bearer wrong", "x-api-key": "secret-one"}]
    for headers in [*none, *wrong]:
        result = await TOKENS.authenticate(sent(headers))
        assert isinstance(result, Denial)
        assert result.challenge == ("Bearer" if headers in none else 'Bearer error="invalid_token"'), headers


async def test_each_static_token_has_a_stable_principal() -> None:
    one = await TOKENS.authenticate(sent({"x-api-key": "secret-one"}))
    assert one == await StaticTokens(["secret-one"]).authenticate(sent({"authorization": "Bearer secret-one"}))
    assert one != await TOKENS.authenticate(sent({"x-api-key": "secret-two"}))


async def test_without_static_tokens_requests_have_no_principal() -> None:
    assert await StaticTokens([]).authenticate(sent({})) is None


def test_an_empty_token_is_refused() -> None:
    for token in ("", "  "):
        with pytest.raises(ValueError, match="empty token"):
            StaticTokens([token])
