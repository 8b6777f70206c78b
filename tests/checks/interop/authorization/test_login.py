"""`login`, `accounts`, `call` and `logout`, as people use them: real processes, a browser, and an issuer."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.checks.interop.authorization.authority import Authority
from tests.checks.interop.authorization.certificates import Certificates
from tests.wire import serving

BROWSER = """#!{python}
import sys, httpx
with httpx.Client(follow_redirects=True, trust_env=True) as browser:
    browser.get(sys.argv[1])
"""


class User:
    """Somebody with a home, a browser and the commands."""

    def __init__(self, home: Path, trust: Mapping[str, str]) -> None:
        browser = home / "browser"
        browser.write_text(BROWSER.format(python=sys.executable))
        browser.chmod(0o700)
        self.home = home
        own = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "BROWSER": f"{browser} %s"}
        own["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
        self.env = {**os.environ, **trust, **own}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "servers", *words]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=60, check=False)


@asynccontextmanager
async def protected(folder: Path, authority: Authority, trust: Mapping[str, str]) -> AsyncIterator[str]:
    """The URL of a server that wants tokens of `authority`."""
    (folder / "notes.txt").write_text("remember")
    command = [sys.executable, "-m", "servers.filesystem", str(folder), "--transport", "http", "--port", "0"]
    async with serving([*command, "--auth-issuer", authority.issuer], env={**os.environ, **trust}) as base:
        yield f"{base}/mcp"


async def test_a_user_logs_in_and_out(tmp_path: Path, authority: Authority, trusted: Certificates) -> None:
    user = User(tmp_path, trusted.trust)
    served = tmp_path / "served"
    served.mkdir()
    async with protected(served, authority, trusted.trust) as url:
        read = ("call", url, "read_text_file", "path=notes.txt")
        refused = user.run(*read)
        assert refused.returncode == 1
        assert "login" in refused.stderr

        entered = user.run("login", url)
        assert entered.returncode == 0, entered.stderr
        assert "logged in" in entered.stderr

        found = user.run(*read)
        assert (found.returncode, found.stdout.strip()) == (0, "remember"), found.stderr

        (account,) = json.loads(user.run("accounts", "--json").stdout)
        assert account["resource"] == url
        assert account["issuer"] == authority.issuer
        assert "filesystem:read" in account["scopes"]
        tokens = tmp_path / "state/mcp-server-bundle/accounts/tokens.json"
        assert tokens.stat().st_mode & 0o077 == 0
        assert tokens.parent.stat().st_mode & 0o077 == 0

        left = user.run("logout", url)
        assert left.returncode == 0, left.stderr
        assert json.loads(user.run("accounts", "--json").stdout) == []
        assert "access_token" not in tokens.read_text()
        assert user.run(*read).returncode == 1
