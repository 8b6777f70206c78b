"""A protected server on the official Python SDK 2.x, as its documentation would have it written.

python serve_sdk2.py PORT ISSUER
"""

import sys
from pathlib import Path

import httpx2
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

PORT, ISSUER = int(sys.argv[1]), sys.argv[2]
URL = f"http://127.0.0.1:{PORT}/mcp"


class Verifier(TokenVerifier):
    """Of JWTs."""

    async def verify_token(self, token: str) -> AccessToken | None:
        async with httpx2.AsyncClient() as http:
            keys = KeySet.import_key_set((await http.get(f"{ISSUER}/jwks")).json())
        try:
            claims = jwt.decode(token, keys, algorithms=["ES256"]).claims
            jwt.JWTClaimsRegistry(iss={"essential": True, "value": ISSUER}).validate(claims)
        except JoseError:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims.get("scope", "").split(),
            expires_at=claims["exp"],
            resource=claims["aud"],
        )


settings = AuthSettings(
    issuer_url=ISSUER, resource_server_url=URL, required_scopes=["filesystem:read"], validate_token_resource=True
)
app = MCPServer("sample", token_verifier=Verifier(), auth=settings)


@app.tool()
def read_text_file(path: str) -> str:
    """Read a file."""
    return Path(path).read_text()


@app.tool()
def write_file(path: str, content: str) -> str:
    """Write a file."""
    Path(path).write_text(content)
    return "done"


if __name__ == "__main__":
    app.run("streamable-http", port=PORT)
