"""What the tests beside rely on: an authorization server that clients and servers of MCP can work with."""

import pytest

from tests.checks.interop.authorization.authority import Authority

pytestmark = [pytest.mark.timeout(360)]  # the first one may have to install it

RESOURCE = "http://127.0.0.1:1/mcp"


@pytest.mark.parametrize("name", ["oauth-authorization-server", "openid-configuration"])
def test_it_says_what_it_can_do(authority: Authority, name: str) -> None:
    said = authority.metadata(name)
    assert said["issuer"] == authority.issuer
    assert said["code_challenge_methods_supported"] == ["S256"]
    assert said["client_id_metadata_document_supported"]
    assert said["authorization_response_iss_parameter_supported"]
    assert said["registration_endpoint"].startswith(authority.issuer)


def test_an_opaque_token_is_introspected_until_it_is_revoked(authority: Authority) -> None:
    authority.has_introspected(RESOURCE)
    token = authority.token(RESOURCE, "filesystem:read")
    said = authority.introspect(token)
    assert (said["active"], said["aud"], said["scope"]) == (True, RESOURCE, "filesystem:read")
    authority.revoke(token)
    assert authority.introspect(token) == {"active": False}
