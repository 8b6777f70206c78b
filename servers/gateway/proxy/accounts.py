"""Who the user is at servers with a URL: what `login` keeps, and the commands that connect use."""

from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from shared.client.auth.grants import AuthorizationCode
from shared.client.auth.oauth import OAuth
from shared.client.auth.store import FileTokens
from shared.client.auth.stored_login import pointer_key
from shared.client.auth.tokens import Key
from shared.contracts import Credentials
from shared.text import plain

from .urls import place_of

_NEVER = 253_402_300_800
"""The year 10000, which no calendar here has."""


class Account(NamedTuple):
    """A login to one server; nothing of it is secret."""

    resource: str
    issuer: str
    scopes: tuple[str, ...]
    expires: float | None
    """When its token ends, in seconds since 1970; None where nobody has said."""

    @classmethod
    def of(cls, key: Key, value: Mapping[str, Any]) -> "Account":
        """The login that is kept as this."""
        expires = value.get("expires")
        is_time = isinstance(expires, int | float) and 0 <= expires < _NEVER
        scopes = tuple(str(value.get("scope") or "").split())
        return cls(key[1], key[0], scopes, expires if is_time else None)


class Accounts:
    """All logins of the user: in the system's keyring where there is one, else in a file that nobody else reads."""

    def __init__(self, folder: Path) -> None:
        """Raises AuthError for a keyring that is misnamed."""
        self.tokens: Any = FileTokens(folder)
        if find_spec("keyring") is not None:
            from shared.client.auth.keyring_store import KeyringTokens, usable_keyring

            system = usable_keyring()
            if system is not None:
                self.tokens = KeyringTokens(folder, system)

    def all(self) -> list[Account]:
        """The logins, by resource. Raises AuthError where they can't be read."""
        entries = self.tokens.entries()
        found = [Account.of(key, value) for key, value in entries.items() if all(key) and "scope" in value]
        return sorted(found)

    def knows(self, url: str) -> bool:
        """Whether there is a login to the server at `url`. Raises AuthError."""
        return server_key(url) in self.tokens.entries()

    def urls(self, resource: str) -> list[str]:
        """The URLs of the servers that a login to `resource` is used for. Raises AuthError."""
        entries = self.tokens.entries()
        return [
            url for (issuer, url), value in entries.items() if not issuer and value.get("key", [""])[-1] == resource
        ]


def server_key(url: str) -> Key:
    """Where a login to the server at `url` is kept, whatever it is reached over."""
    return pointer_key(f"http{url[2:]}" if url[:2].lower() == "ws" else url)


def stored_credentials(url: str, folder: Path) -> Credentials | None:
    """What the user has logged in to the server at `url` with; None where he has not, and where that needs an extra
    that is missing. Raises AuthError where it can't be read."""
    accounts = Accounts(folder)
    if not accounts.knows(url):
        return None

    def how_to_log_in(lacks: Collection[str]) -> str:
        scopes = "".join(f" --scope {scope}" for scope in sorted(lacks))
        return plain(f"run `mcp-server-bundle login {place_of(url)}{scopes}`")

    return OAuth(url, AuthorizationCode(None, advice=how_to_log_in), tokens=accounts.tokens)
