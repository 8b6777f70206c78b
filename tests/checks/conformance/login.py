"""How our client logs in, in each scenario of the official suite about authorization."""

import json
import os
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

import httpx

from shared.client.auth.grants import AuthorizationCode, ClientCredentials, EnterpriseManaged, Grant, WorkloadIdentity
from shared.client.auth.oauth import OAuth
from shared.client.auth.registration import ClientInformation

METADATA_URL = "https://conformance-test.local/client-metadata.json"


class Following:
    """A person whose browser is sent on at once, as the suite does it."""

    redirect_uris = ("http://localhost:3000/callback",)

    async def open(self, url: str) -> Mapping[str, str]:
        """Goes where the issuer sends a browser, and no further."""
        async with httpx.AsyncClient() as browser:
            answer = await browser.get(url, follow_redirects=False)
        return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


def credentials(scenario: str, url: str) -> OAuth:
    """Who the client is in `scenario`, at the server at `url`."""
    return OAuth(url, _grant(scenario, json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")))


def _grant(scenario: str, context: Mapping[str, str]) -> Grant:
    given = ClientInformation(
        context.get("client_id", ""), context.get("client_secret"), issuer=context.get("issuer")
    )
    match scenario.removeprefix("auth/"):
        case "basic-cimd":
            return AuthorizationCode(Following(), metadata_url=METADATA_URL)
        case "pre-registration":
            return AuthorizationCode(Following(), given)
        case "client-credentials-basic":
            return ClientCredentials(given)
        case "client-credentials-jwt":
            key, algorithm = context["private_key_pem"], context["signing_algorithm"]
            return ClientCredentials(ClientInformation(context["client_id"], private_key=key, algorithm=algorithm))
        case "enterprise-managed-authorization":
            at_provider = ClientInformation(context["idp_client_id"], issuer=context["idp_issuer"])
            return EnterpriseManaged(given, context["idp_id_token"], at_provider, context["idp_token_endpoint"])
        case "wif-jwt-bearer":
            return WorkloadIdentity(context["valid_jwt"])
    return AuthorizationCode(Following())
