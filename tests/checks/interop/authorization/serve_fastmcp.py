"""A protected server on FastMCP 4, as its documentation would have it written.

python serve_fastmcp.py PORT ISSUER
"""

import sys
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.server.auth import RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier
from pydantic import AnyHttpUrl, ConfigDict, TypeAdapter

PORT, ISSUER = int(sys.argv[1]), sys.argv[2]
ORIGIN = f"http://127.0.0.1:{PORT}"

# An AnyHttpUrl by itself ends in a slash, which the issuer does not: clients that compare them would not log in.
_AS_IT_IS = TypeAdapter(AnyHttpUrl, config=ConfigDict(url_preserve_empty_path=True))

verifier = JWTVerifier(
    jwks_uri=f"{ISSUER}/jwks",
    issuer=ISSUER,
    audience=f"{ORIGIN}/mcp",
    algorithm="ES256",
    required_scopes=["filesystem:read"],
)
app = FastMCP("sample", auth=RemoteAuthProvider(verifier, [_AS_IT_IS.validate_python(ISSUER)], ORIGIN))


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
    app.run("http", port=PORT)
