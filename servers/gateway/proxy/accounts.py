"""The user's accounts at servers with a URL: the command `login` stores them, and commands that connect use them."""

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

from .urls import display_url

_YEAR_10000 = 253_402_300_800
"""The start of the year 10000, the first that datetime can't represent, in seconds since 1970."""


class Account(NamedTuple):
    """A login to one server, without its secrets."""

    resource: str
    issuer: str
    scopes: tuple[str, ...]
    expires: float | None
    """The time when its token expires, in seconds since 1970; None if unknown."""

    @classmethod
    def of(cls, key: Key, value: Mapping[str, Any]) -> "Account":
        """Return the login that the storage has under `key`, with the content `value`."""
        expires = value.get("expires")
        is_time = isinstance(expires, int | float) and 0 <= expires < _YEAR_10000
        scopes = tuple(str(value.get("scope") or "").split())
        return cls(key[1], key[0], scopes, expires if is_time else None)


class Accounts:
    """All logins of the user. They are stored in the system's keyring if there is one, else in a file that only the
    user can read."""

    def __init__(self, folder: Path) -> None:
        """Open the storage. Raises AuthError if the configured keyring does not exist."""
        self.tokens: Any = FileTokens(folder)
        if find_spec("keyring") is not None:
            from shared.client.auth.keyring_store import KeyringTokens, usable_keyring

            system = usable_keyring()
            if system is not None:
                self.tokens = KeyringTokens(folder, system)

    def all(self) -> list[Account]:
        """Return the logins, sorted by resource. Raises AuthError if they can't be read."""
        entries = self.tokens.entries()
        accounts = [Account.of(key, value) for key, value in entries.items() if all(key) and "scope" in value]
        return sorted(accounts)

    def knows(self, url: str) -> bool:
        """Return True if there is a login to the server at `url`. Raises AuthError if logins can't be read."""
        return server_key(url) in self.tokens.entries()

    def urls(self, resource: str) -> list[str]:
        """Return the URLs of the servers for which a login to `resource` is used. Raises AuthError if logins can't be
        read."""
        entries = self.tokens.entries()
        return [
            url for (issuer, url), value in entries.items() if not issuer and value.get("key", [""])[-1] == resource
        ]


def server_key(url: str) -> Key:
    """Return the key of the login to the server at `url`. A WebSocket URL has the same key as the HTTP URL."""
    return pointer_key(f"http{url[2:]}" if url[:2].lower() == "ws" else url)


def stored_credentials(url: str, folder: Path) -> Credentials | None:
    """Return the user's credentials for the server at `url`; None if there is no login. Raises AuthError if they
    can't be read."""
    accounts = Accounts(folder)
    if not accounts.knows(url):
        return None

    def advise_login(missing_scopes: Collection[str]) -> str:
        scopes = "".join(f" --scope {scope}" for scope in sorted(missing_scopes))
        return plain(f"run `mcp-server-bundle login {display_url(url)}{scopes}`")

    return OAuth(url, AuthorizationCode(None, advice=advise_login), tokens=accounts.tokens)
