"""Named bearer tokens in a TOML file, which contains only their digests.

    ["ada@example.org"]
    digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    scopes = ["filesystem:read"]  # everything, if it is missing
    expires = 2027-01-01T00:00:00Z  # never, if it is missing

The file is read again after a change. If it has been deleted, its tokens stay valid for two seconds; if it can't be
read or is invalid, for a minute, since someone may be editing it. Then none of them is valid. Both events are logged.
"""

import hmac
import logging
import math
import os
import re
import stat
import time
import tomllib
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import blake2b, sha256
from pathlib import Path
from secrets import token_bytes

from ..protocol.identity import Principal
from ..protocol.records import record
from .policy import parse_scopes

log = logging.getLogger("shared.auth")

CHECK_SECONDS = 1.0
"""Seconds between two checks whether the file has changed."""
DELETED_SECONDS = 2.0
"""Seconds for which the tokens of a deleted file stay valid: some editors delete a file and write it again."""
INVALID_SECONDS = 60.0
"""Seconds for which the last tokens stay valid if the file can't be read or is invalid."""
_NAME = re.compile(r"[!-~]{1,128}")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_TOKEN = re.compile(r"[!-~]+")
_OTHERS_ACCESS = stat.S_IRGRP | stat.S_IROTH | stat.S_IWGRP | stat.S_IWOTH
_MAX_TOKEN_LENGTH = 4_096

Stamp = tuple[int, int, int] | None
"""The time of the last change, the size and the inode of the file; None if there is no file."""


@record
class NamedToken:
    """The entry of one token in the file, under its name."""

    name: str
    digest: str
    scopes: frozenset[str] | None = None
    """The scopes of the token; None if it allows everything."""
    expires: datetime | None = None


def digest_of(token: str) -> str:
    """Return the digest of a token in the form used in the file."""
    return f"sha256:{sha256(token.encode()).hexdigest()}"


def read_tokens(text: str, path: Path) -> dict[str, NamedToken]:
    """Return the tokens in `text`, the content of the file at `path`, by their names. Raises ValueError with a
    one-line message that begins with `path`."""
    try:
        content = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from None
    tokens: dict[str, NamedToken] = {}
    owners: dict[str, str] = {}
    for name, entry in content.items():
        try:
            if not _NAME.fullmatch(name):
                raise ValueError("a name must be one word of at most 128 printable ASCII characters")
            if not isinstance(entry, dict) or not entry.keys() <= {"digest", "scopes", "expires"}:
                raise ValueError("must be a table with digest, scopes and expires")
            digest, expires = entry.get("digest"), entry.get("expires")
            if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
                raise ValueError("digest must be 'sha256:' and 64 lower-case hexadecimal digits")
            if expires is not None and (not isinstance(expires, datetime) or expires.tzinfo is None):
                raise ValueError("expires must be a time with a time zone, such as 2027-01-01T00:00:00Z")
            token = NamedToken(name, digest, parse_scopes(entry["scopes"]) if "scopes" in entry else None, expires)
        except ValueError as error:
            raise ValueError(f"{path}: {name!r}: {error}") from None
        if token.digest in owners:
            raise ValueError(f"{path}: {name!r} has the same token as {owners[token.digest]!r}")
        tokens[name], owners[token.digest] = token, name
    return tokens


class TokensFile:
    """The tokens in a file, which is read again when it has changed."""

    def __init__(
        self, path: Path, now: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Read the file. Raises ValueError with a one-line message if it can't be read or is invalid."""
        self.path = path
        self.is_exposed = False
        """True if users other than its owner may read or write it."""
        self._now, self._clock = now, clock
        # Tokens are looked up by a digest with this secret key, so that the time of the lookup reveals nothing about
        # them.
        self._pepper = token_bytes(32)
        self._stamp = _stamp_of(path)
        self._checked_at = clock()
        self._invalid_at = math.inf
        """The time, by `clock`, at which the tokens become invalid; infinite while the file is valid."""
        self._principals: Mapping[bytes, Principal] = self._load()

    def owner_of(self, token: str) -> Principal | None:
        """Return the owner of this token; None if it is unknown or no longer valid."""
        self._refresh()
        if len(token) > _MAX_TOKEN_LENGTH:
            return None
        principal = self._principals.get(self._hash(digest_of(token)))
        # The token may have expired since the file was read.
        is_over = principal is not None and principal.expires is not None and principal.expires <= self._now()
        return None if is_over else principal

    def _refresh(self) -> None:
        now = self._clock()
        if now - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = now
        stamp = _stamp_of(self.path)
        is_changed, self._stamp = stamp != self._stamp, stamp
        # After an error, try again even if the file has not changed: the process may have run out of file
        # descriptors.
        if is_changed or self._invalid_at < math.inf:
            try:
                self._principals, self._invalid_at = self._load(), math.inf
            except ValueError as error:
                seconds = DELETED_SECONDS if stamp is None else INVALID_SECONDS
                self._invalid_at = min(self._invalid_at, now + seconds)
                if is_changed:
                    log.error("%s; its tokens remain valid for %.0f s", error, max(self._invalid_at - now, 0))
        if now >= self._invalid_at and self._principals:
            self._principals = {}
            log.error("%s: none of its tokens is valid until the file can be read", self.path)

    def _load(self) -> Mapping[bytes, Principal]:
        try:
            with self.path.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                text = file.read().decode()
        except OSError as error:
            raise ValueError(f"{self.path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ValueError(f"{self.path} is not UTF-8") from None
        self.is_exposed = os.name == "posix" and bool(mode & _OTHERS_ACCESS)
        return self._read(text)

    def _read(self, text: str) -> Mapping[bytes, Principal]:
        return {self._hash(token.digest): self._principal(token) for token in read_tokens(text, self.path).values()}

    def _principal(self, named_token: NamedToken) -> Principal:
        key = self._hash(named_token.digest)
        expires = None if named_token.expires is None else named_token.expires.timestamp()

        def is_revoked() -> bool:
            self._refresh()
            current = self._principals.get(key)
            return current is None or (current.scopes, current.expires) != (named_token.scopes, expires)

        # The key is derived from the name, so that its owner keeps sessions and tasks when the operator replaces the
        # token.
        return Principal(
            f"token:{named_token.name}", named_token.name, named_token.scopes, expires=expires, is_revoked=is_revoked
        )

    def _hash(self, digest: str) -> bytes:
        # BLAKE2 accepts a key, and takes a third of the time of an HMAC, which matters because each request needs it.
        return blake2b(digest.encode(), key=self._pepper, digest_size=32).digest()


class TokenFile(TokensFile):
    """The single token in a file, which is read again when it has changed: a new token replaces the old one."""

    def owner_of(self, token: str) -> Principal | None:
        """Return the owner of this token; None if the file contains another token."""
        self._refresh()
        digest = sha256(token.encode()).digest()
        # Comparing one digest in constant time takes a tenth of the time of a lookup by keyed digest.
        for stored, owner in self._principals.items():
            if hmac.compare_digest(stored, digest):
                return owner
        return None

    def _read(self, text: str) -> Mapping[bytes, Principal]:
        digest = sha256(read_token(text, self.path).encode()).digest()

        def is_revoked() -> bool:
            self._refresh()
            return digest not in self._principals

        return {digest: Principal(f"token-{digest.hex()[:12]}", is_revoked=is_revoked)}


def read_token(text: str, path: Path) -> str:
    """Return the token in `text`, the content of the file at `path`. Raises ValueError with a one-line message that
    begins with `path`."""
    # Editors and `echo` end a file with a newline, which is not part of the token.
    token = text.strip()
    if not token:
        raise ValueError(f"{path} is empty")
    if not _TOKEN.fullmatch(token):
        raise ValueError(f"{path}: a token must be one word of printable ASCII characters")
    return token


def _stamp_of(path: Path) -> Stamp:
    try:
        stat_ = path.stat()
    except OSError:
        return None
    # The inode is included because a file that an editor replaces may have the same size and, within one tick of the
    # clock, the same time.
    return stat_.st_mtime_ns, stat_.st_size, stat_.st_ino
