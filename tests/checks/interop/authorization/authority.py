"""The authorization server of `authority.mjs`, as a process of a test run."""

import json
import os
import ssl
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from tests import npm
from tests.checks.interop.authorization.certificates import Certificates

FOLDER = Path(__file__).resolve().parent
SECRET = "a-secret-for-tests-which-is-long-enough"
PATIENCE = 60.0
READY = "listening on "


class Authority:
    """It runs while the block is entered. Raises Unavailable where it can't be installed."""

    issuer: str

    def __init__(self, folder: Path, certificates: Certificates) -> None:
        self._said = folder / "authority.log"
        self._certificates = certificates
        trusted = ssl.create_default_context(cafile=certificates.authority)
        self._http = httpx.Client(verify=trusted, timeout=PATIENCE, trust_env=False)

    @property
    def document(self) -> str:
        """The identifier of a client that has a document."""
        return f"{self.issuer}/clients/document.json"

    def token(self, resource: str, *scopes: str, client: str = "robot") -> str:
        """An access token for `resource`, as the program `client` gets it."""
        answer = self._post(
            "token", client, grant_type="client_credentials", resource=resource, scope=" ".join(scopes)
        )
        token: str = answer["access_token"]
        return token

    def has_introspected(self, resource: str) -> None:
        """From now on the tokens for `resource` are no JWTs."""
        self._http.get(f"{self.issuer}/opaque", params={"resource": resource}).raise_for_status()

    def revoke(self, token: str, client: str = "robot") -> None:
        """Ends an access token that has to be introspected."""
        answer = self._http.post(f"{self.issuer}/token/revocation", data={"token": token}, auth=(client, SECRET))
        answer.raise_for_status()

    def _post(self, path: str, client: str, **fields: str) -> dict[str, Any]:
        answer = self._http.post(f"{self.issuer}/{path}", data=fields, auth=(client, SECRET))
        found: dict[str, Any] = answer.raise_for_status().json()
        return found

    def __enter__(self) -> "Authority":
        node = npm.find_node()
        npm.require(node, FOLDER, "the authorization server")
        files = dict.fromkeys(("cert", "key"), str(self._certificates.certificate))
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [node, FOLDER / "authority.mjs", json.dumps(files)],
                cwd=FOLDER,
                env=os.environ | self._certificates.trust,
                stdout=subprocess.PIPE,
                stderr=said,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode()
        if not line.startswith(READY):
            self.close()
            raise AssertionError(f"the authorization server does not listen: {self._said.read_text()[-2000:]}")
        self.issuer = line.removeprefix(READY).strip()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends it, and waits for it."""
        self._http.close()
        self._process.terminate()
        try:
            self._process.communicate(timeout=PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
