"""A server at a URL that the user has specified, and how to connect to it with the user's headers, token or login."""

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
    """The headers of each request; values may be secret."""

    @classmethod
    def of(cls, url: str, headers: Sequence[str], token: str | None) -> "Remote":
        """Return the server at `url`, to which `headers`, each as NAME=VALUE or NAME:VALUE, and a bearer `token` are
        sent.

        Raises ValueError with a one-line message that contains no secret if the URL or a header is invalid.
        """
        check_url(url)
        fixed: dict[str, str] = {}
        for text in headers:
            match = _HEADER.fullmatch(text)
            if match is None:
                raise ValueError("--header takes NAME=VALUE")
            fixed[match[1].strip()] = match[2].strip()
        return cls(url, fixed_headers(token, fixed))

    @property
    def has_token(self) -> bool:
        """True if the headers contain credentials of the user."""
        return _has_credentials(self.headers)


def accounts_folder() -> Path:
    """Return the directory of the user's accounts at servers with a URL. Raises ValueError if the home directory is
    unknown."""
    return Path(state_folder(this_machine())) / "accounts"


def connect_as_user(
    url: str, options: ClientOptions, headers: Mapping[str, str]
) -> AbstractAsyncContextManager[Client]:
    """Return a client of the server at `url` that sends `headers`. If they contain no credentials, the client uses
    the user's stored login, if there is one. Raises the same errors as `connect`."""
    if _has_credentials(headers) or not (accounts_folder() / "tokens.json").exists():
        return connect(url, options, headers=headers)
    from .accounts import stored_credentials

    return connect(url, options, headers=headers, auth=stored_credentials(url, accounts_folder()))


def _has_credentials(headers: Mapping[str, str]) -> bool:
    return not {"authorization", "x-api-key", "cookie"}.isdisjoint(map(str.lower, headers))


def read_token(path: Path) -> str:
    """Read the token in a file. Raises ValueError with a one-line message."""
    try:
        token = path.read_text("ascii", "replace").strip()
    except OSError as error:
        raise ValueError(f"--token-file: {path}: {error.strerror}") from None
    if not token:
        raise ValueError(f"--token-file: {path} is empty")
    return token
