"""Authorization options of a listener: refusals at startup, and requests to a process."""

import os
import socket
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from shared.auth import tokens_file
from shared.auth.authenticators import OAuthTokens
from shared.auth.tokens import StaticTokens
from shared.auth.tokens_file import digest_of
from shared.program.authorization import check_public_url
from shared.program.process import Options, http_options, read_listener_token
from shared.protocol.http.protected import WELL_KNOWN
from shared.protocol.identity import Principal
from tests.raw import ROOT, Json, Raw, call, headers_of, listening, request, stateless
from tests.shared.auth.issuing import RESOURCE, FakeIssuer, bear, issuing
from tests.wire import PATIENCE

ISSUER = "https://issuer.example.org"
PUBLIC = "https://mcp.example.org"


def options_of(**options: Any) -> Any:
    """Returns the HTTP options that these options make."""
    read = Options.model_validate({"transport": "http", **options})
    return http_options(read, read_listener_token(read))


@pytest.mark.slow
def test_oauth_libraries_are_not_loaded_without_an_issuer() -> None:
    code = (
        "import sys; from shared.program.process import Options, http_options, read_listener_token\n"
        "options = Options(transport='http', token='t'); http_options(options, read_listener_token(options))\n"
        "print({'joserfc', 'httpx', 'authlib', 'cryptography'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "set()\n", done.stderr


def test_an_issuer_can_be_combined_with_static_tokens() -> None:
    http = options_of(token="own", auth_issuer=[ISSUER])
    assert isinstance(http.authenticator, OAuthTokens)
    assert http.issuers.urls == (ISSUER,)
    assert isinstance(options_of(token="own").authenticator, StaticTokens)
    assert options_of(token="own").issuers is None


def test_a_changed_token_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_file, "CHECK_SECONDS", 0)
    path = tmp_path / "token"
    path.write_text("old")
    tokens = options_of(token_file=path).authenticator
    path.write_text("newer")
    assert [tokens.owner_of(token) is None for token in ("old", "newer")] == [True, False]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"host": "0.0.0.0"}, "reachable from other machines"),
        ({"trusted_proxy": ["the proxy"]}, "--trusted-proxy: 'the proxy' is not an IP address or network"),
        ({"host": "0.0.0.0", "auth_issuer": [ISSUER]}, "--public-url"),
        ({"auth_issuer": ["http://issuer.example.org"]}, "--auth-issuer"),
        ({"auth_issuer": ["issuer.example.org"]}, "--auth-issuer"),
        ({"auth_issuer": [f"{ISSUER}/?x=1"]}, "--auth-issuer"),
        ({"auth_issuer": [ISSUER], "auth_algorithm": ["HS256"]}, "--auth-algorithm"),
        ({"auth_issuer": [ISSUER], "auth_algorithm": ["none"]}, "--auth-algorithm"),
        ({"auth_issuer": [ISSUER], "auth_client_id": "rs"}, "--auth-client-secret-file"),
        ({"auth_issuer": [ISSUER, PUBLIC], "auth_client_id": "rs", "auth_client_secret": "x"}, "one --auth-issuer"),
        ({"auth_issuer": [ISSUER], "public_url": "mcp.example.org"}, "--public-url"),
        ({"auth_issuer": [ISSUER], "public_url": f"{PUBLIC}/?x"}, "--public-url"),
        ({"auth_issuer": [ISSUER], "public_url": f"{PUBLIC}:99999"}, "--public-url"),
        ({"auth_issuer": [ISSUER], "public_url": f'{PUBLIC}/"'}, "--public-url"),
        ({"auth_issuer": [ISSUER], "public_url": "https://u:hunter2@mcp.example.org"}, "--public-url"),
        ({"tokens_file": Path("no/such/file")}, "no/such/file: No such file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_options_are_refused_in_one_line(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        options_of(**options)
    assert "\n" not in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "claims", "name"),
    [
        ({}, {}, "alice"),
        ({}, {"exp": -30}, "alice"),
        ({"auth_skew": 0}, {"exp": -30}, None),
        ({"auth_principal_claim": "email"}, {"email": "a@b.example"}, "a@b.example"),
        ({"auth_issuer": [ISSUER]}, {}, "{}#alice"),
        ({"auth_algorithm": ["ES256"]}, {}, "alice"),
        ({"auth_algorithm": ["RS256"]}, {}, None),
        ({"auth_dpop": "required"}, {}, None),
        ({"auth_client_id": "rs", "auth_client_secret": "x"}, {}, "carol"),
    ],
)
async def test_each_option_decides_who_a_token_is(
    options: dict[str, Any], claims: dict[str, Any], name: str | None
) -> None:
    async with issuing() as issuer:
        if "exp" in claims:
            claims = {"exp": int(time.time()) + claims["exp"]}
        token = issuer.sign(**claims)
        issuer.active[token] = {"active": True, "aud": RESOURCE, "sub": "carol"}
        issuers = [issuer.url, *options.get("auth_issuer", [])]
        authenticator = options_of(**{**options, "auth_issuer": issuers, "token": "own"}).authenticator
        sender, owner = await bear(authenticator, token), await bear(authenticator, "own")
        asked = [one.headers["authorization"] for one in issuer.site.received if one.path == "/introspect"]
    assert getattr(sender, "name", None) == (name and name.format(issuer.url))
    assert isinstance(owner, Principal)
    assert {*asked} <= {f"Basic {b64encode(b'rs:x').decode()}"}


def test_a_public_url_is_made_canonical() -> None:
    assert check_public_url("HTTPS://MCP.Example.org:443/Tools/") == "https://mcp.example.org/Tools"


@pytest.mark.parametrize("options", [{"tokens_file": "tokens"}, {"auth_issuer": [ISSUER], "public_url": PUBLIC}])
def test_a_public_host_needs_a_tokens_file_or_an_issuer(options: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("")
    found = {name: tmp_path / "tokens" if name == "tokens_file" else value for name, value in options.items()}
    assert options_of(host="0.0.0.0", **found).authenticator


@pytest.mark.skipif(os.name != "posix", reason="these modes are those of POSIX: run it on Linux or macOS")
@pytest.mark.parametrize(("mode", "warns"), [(0o600, False), (0o644, True), (0o620, True)])
def test_a_tokens_file_accessible_to_others_is_reported(
    mode: int, warns: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tokens"
    path.write_text("")
    path.chmod(mode)
    options_of(tokens_file=path)
    assert (f"users other than its owner can read or write {path}" in caplog.text) == warns


# Processes

DISCOVER = stateless(request(1, "server/discover"))


class Door:
    """A listener, its issuer, and a client."""

    def __init__(self, url: str, issuer: FakeIssuer, client: httpx.AsyncClient) -> None:
        self.url = url
        self.issuer = issuer
        self.client = client

    async def post(self, path: str, token: str | None, message: Json = DISCOVER) -> httpx.Response:
        bearer = {} if token is None else {"authorization": f"Bearer {token}"}
        return await self.client.post(self.url + path, json=message, headers={**headers_of(message), **bearer})

    async def call(self, path: str, token: str, tool: str) -> httpx.Response:
        return await self.post(path, token, stateless(call(1, tool)))

    async def get(self, path: str) -> Any:
        answer = await self.client.get(self.url + path)
        assert answer.status_code == 200, (path, answer.text)
        return answer.json()


@asynccontextmanager
async def door(command: list[str], **environment: str) -> AsyncIterator[Door]:
    """Runs a program that accepts the tokens of an issuer of the test."""
    async with issuing() as issuer, httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
        words = [*command, "--port", "0", "--auth-issuer", issuer.url]
        env = {**os.environ, **environment, "NO_PROXY": "127.0.0.1,localhost"}
        with Raw([sys.executable, "-m", *words], env=env) as server:
            yield Door(listening(server).removesuffix("/mcp").removesuffix("/"), issuer, client)


@pytest.mark.slow
async def test_a_server_accepts_tokens_for_its_own_resource(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[ada]\ndigest = "{digest_of("named")}"\nscopes = ["everything:read"]\n')
    everything = ["servers.everything", "--transport", "http"]
    async with door(everything, MCP_TOKEN="own", MCP_TOKENS_FILE=str(tokens)) as site:
        refused = await site.post("/mcp", None)
        metadata_url = f"{site.url}{WELL_KNOWN}/mcp"
        assert (refused.status_code, refused.headers["www-authenticate"].split(" ")[0]) == (401, "Bearer")
        assert f'resource_metadata="{metadata_url}"' in refused.headers["www-authenticate"]
        metadata = await site.get(f"{WELL_KNOWN}/mcp")
        assert (metadata["resource"], metadata["authorization_servers"]) == (f"{site.url}/mcp", [site.issuer.url])
        assert await site.get(WELL_KNOWN) == metadata
        good, elsewhere = (
            site.issuer.sign(aud=f"{site.url}{path}", scope="everything:read") for path in ("/mcp", "/other/mcp")
        )
        for token, status in ((good, 200), (elsewhere, 401), ("own", 200), ("named", 200), ("other", 401)):
            assert (await site.post("/mcp", token)).status_code == status
        for token, status in (("own", 200), ("named", 403), (good, 403)):
            assert (await site.call("/mcp", token, "trigger_resource_change")).status_code == status
        # HTTP+SSE serves the same servers under other URLs, for which its clients get their tokens.
        assert (await site.get(f"{WELL_KNOWN}/sse"))["resource"] == f"{site.url}/sse"


@pytest.mark.slow
def test_an_issuer_that_can_not_be_reached_is_reported_at_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        issuer = f"http://127.0.0.1:{closed.getsockname()[1]}"
    words = ["-m", "servers.everything", "--transport", "http", "--port", "0", "--auth-issuer", issuer]
    with Raw([sys.executable, *words], env={**os.environ, "MCP_TOKEN": "own"}) as server:
        url = listening(server).removesuffix("/mcp")
        answer = httpx.get(f"{url}/readyz", headers={"x-api-key": "own"}, trust_env=False, timeout=PATIENCE)
        assert (answer.status_code, answer.json()["reason"]) == (503, f"no answer yet from the issuer {issuer}")
        assert server.process.stderr is not None
        line = server.process.stderr.readline().decode()
    assert f"the issuer {issuer} did not provide its keys" in line


@pytest.mark.slow
async def test_each_of_several_servers_is_its_own_resource(tmp_path: Path) -> None:
    served = ["servers", "serve", "--join", "everything", "prompts"]
    async with door(served, MCP_PROMPTS_LIBRARIES=str(tmp_path)) as site:
        paths = ["/everything/mcp", "/prompts/mcp", "/mcp"]
        for path in paths:
            assert (await site.get(WELL_KNOWN + path))["resource"] == site.url + path
            token = site.issuer.sign(aud=site.url + path)
            good = [one for one in paths if (await site.post(one, token)).status_code != 401]
            assert good == [path]
        assert (await site.get(WELL_KNOWN))["resource"] == f"{site.url}/mcp"
        token = site.issuer.sign(aud=f"{site.url}/mcp", scope="everything:read")
        assert (await site.call("/mcp", token, "test_simple_text")).status_code == 200
        refused = await site.call("/mcp", token, "trigger_resource_change")
        challenge = refused.headers["www-authenticate"]
        assert (refused.status_code, 'scope="everything:write"' in challenge) == (403, True)
        assert f'resource_metadata="{site.url}{WELL_KNOWN}/mcp"' in challenge
        # The page names no servers or issuers; its requests show that a login is needed.
        page = await site.client.get(f"{site.url}/")
        assert (page.status_code, site.issuer.url in page.text) == (200, False)
        figures = await site.client.get(f"{site.url}/metrics")
        assert (figures.status_code, "resource_metadata=" in figures.headers["www-authenticate"]) == (401, True)
