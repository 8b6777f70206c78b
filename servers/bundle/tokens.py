"""Changes to a tokens file. Only one process makes a change at a time, each change is atomic, and the rest of the
file stays as it is."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import tomli_w

from shared.auth.tokens_file import NamedToken, digest_of, read_tokens

from .hosts.files import hold_lock, write_atomically
from .hosts.toml_tree import remove_spans, separator, table_spans

_RANDOM_BYTES = 32
_PREFIX = "mcp_"
"""The beginning of each token, by which secret scanners recognize it."""


class EditableTokens:
    """The tokens in a file, which may not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> dict[str, NamedToken]:
        """Return the tokens by name. Raises ValueError with a one-line message for an invalid file."""
        return read_tokens(self._text().decode(), self.path)

    def create(self, name: str, scopes: list[str] | None, days: int | None) -> str:
        """Create a token called `name` and return it; the file only stores its digest. Its scopes are `scopes`, or
        all if that is None. It is valid for `days` days, or without limit if that is None. Raises ValueError with a
        one-line message if that fails."""
        token = _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
        fields: dict[str, Any] = {"digest": digest_of(token)}
        if scopes is not None:
            fields["scopes"] = scopes
        if days is not None:
            fields["expires"] = datetime.now(UTC).replace(microsecond=0) + timedelta(days=days)
        with self._lock():
            text = self._text()
            if name in self.all():
                raise ValueError(f"{self.path}: there is already a token {name!r}; `token revoke` removes it")
            newline = b"\r\n" if text.partition(b"\n")[0].endswith(b"\r") else b"\n"
            block = tomli_w.dumps({name: fields}).encode().replace(b"\n", newline)
            self._write(text + separator(text, newline) + block)
        return token

    def revoke(self, name: str) -> None:
        """Remove the token called `name`. Raises ValueError with a one-line message if that fails."""
        with self._lock():
            text, tokens = self._text(), self.all()
            if name not in tokens:
                raise ValueError(f"{self.path}: there is no token {name!r}")
            try:
                self._write(remove_spans(text, table_spans(text, [name])))
            except ValueError as error:
                raise ValueError(f"{self.path}: {error}") from None

    @contextmanager
    def _lock(self) -> Iterator[None]:
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
            raise ValueError(f"{self.path} is not UTF-8") from None
        return text

    def _write(self, text: bytes) -> None:
        read_tokens(text.decode(), self.path)
        write_atomically(self.path, text)
