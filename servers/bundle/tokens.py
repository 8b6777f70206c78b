"""The file of tokens, as its operator changes it: whole, one change at a time, and the rest left as it is."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import tomli_w

from shared.auth.tokens_file import NamedToken, digest_of, read_tokens

from .hosts.files import hold_lock, write_atomically
from .hosts.toml_tree import lead, spans, without

_RANDOM_BYTES = 32
_BEGINNING = "mcp_"
"""Scanners for secrets find tokens by how they begin."""


class TokensToChange:
    """The tokens in a file, which may not be there yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> dict[str, NamedToken]:
        """The tokens by their names. Raises ValueError, in one line, for a file that is wrong."""
        return read_tokens(self._text().decode(), self.path)

    def make(self, name: str, scopes: list[str] | None, days: int | None) -> str:
        """Makes a token called `name`, which allows these scopes, or everything, for so many days, or for ever; gives
        the token, which is written nowhere. Raises ValueError, in one line, where that can't be done."""
        token = _BEGINNING + secrets.token_urlsafe(_RANDOM_BYTES)
        said: dict[str, Any] = {"digest": digest_of(token)}
        if scopes is not None:
            said["scopes"] = scopes
        if days is not None:
            said["expires"] = datetime.now(UTC).replace(microsecond=0) + timedelta(days=days)
        with self._held():
            text = self._text()
            if name in self.all():
                raise ValueError(f"{self.path}: there is a token {name!r} already; `token revoke` takes it out")
            newline = b"\r\n" if text.partition(b"\n")[0].endswith(b"\r") else b"\n"
            block = tomli_w.dumps({name: said}).encode().replace(b"\n", newline)
            self._write(text + lead(text, newline) + block)
        return token

    def revoke(self, name: str) -> None:
        """Takes the token called `name` out. Raises ValueError, in one line, where that can't be done."""
        with self._held():
            text, known = self._text(), self.all()
            if name not in known:
                raise ValueError(f"{self.path}: there is no token {name!r}")
            try:
                self._write(without(text, spans(text, [name])))
            except ValueError as error:
                raise ValueError(f"{self.path}: {error}") from None

    @contextmanager
    def _held(self) -> Iterator[None]:
        with hold_lock(self.path.with_name(f".{self.path.name}.lock")):
            yield

    def _text(self) -> bytes:
        try:
            text = self.path.read_bytes()
            text.decode()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise ValueError(f"{self.path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ValueError(f"{self.path}: is not UTF-8") from None
        return text

    def _write(self, text: bytes) -> None:
        read_tokens(text.decode(), self.path)
        write_atomically(self.path, text)
