"""A server at a URL, as a command line or a file names it: what is sent to it, and what of that is shown."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple

from servers.common.machine import state_folder, this_machine
from shared.client.client import Client
from shared.client.connect import connect, fixed_headers
from shared.client.options import ClientOptions

from .urls import check_url

_HEADER = re.compile(r"([^:=]*)[:=](.*)", re.DOTALL)


class Remote(NamedTuple):
    """A server at a URL."""

    url: str
    headers: dict[str, str]
    """What is sent with each request; values may be secrets."""

    @classmethod
    def of(cls, url: str, headers: Sequence[str], token: str | None) -> "Remote":
        """The server at `url`, which is sent `headers`, each as NAME=VALUE or NAME:VALUE, and a bearer `token`.

        Raises ValueError, in one line without a secret, for what can't be a server or can't be sent.
        """
        check_url(url)
        fixed: dict[str, str] = {}
        for text in headers:
            found = _HEADER.fullmatch(text)
            if found is None:
                raise ValueError("--header takes NAME=VALUE")
            fixed[found[1].strip()] = found[2].strip()
        return cls(url, fixed_headers(token, fixed))

    @property
    def has_token(self) -> bool:
        """Whether what is sent says who we are."""
        return _says_who(self.headers)


def accounts_folder() -> Path:
    """Where it is kept who the user is at servers with a URL. Raises ValueError where nobody knows the home
    directory."""
    return Path(state_folder(this_machine())) / "accounts"


def connect_as_user(
    url: str, options: ClientOptions, headers: Mapping[str, str]
) -> AbstractAsyncContextManager[Client]:
    """A client of the server at `url`, which is sent `headers`; where they don't say who the user is, what he has
    logged in with. Raises as `connect` does."""
    if _says_who(headers) or not (accounts_folder() / "tokens.json").exists():
        return connect(url, options, headers=headers)
    from .accounts import stored_credentials

    return connect(url, options, headers=headers, auth=stored_credentials(url, accounts_folder()))


def _says_who(headers: Mapping[str, str]) -> bool:
    return not {"authorization", "x-api-key", "cookie"}.isdisjoint(map(str.lower, headers))


def read_token(path: Path) -> str:
    """The token in a file. Raises ValueError, in one line."""
    try:
        token = path.read_text("ascii", "replace").strip()
    except OSError as error:
        raise ValueError(f"--token-file: {path}: {error.strerror}") from None
    if not token:
        raise ValueError(f"--token-file: {path} is empty")
    return token
