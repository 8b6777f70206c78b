"""Splits paths and `file:` URIs into components, and writes URIs, for each operating system. No file is accessed.

On Windows a path can mean more than a name below a directory. There a path is refused if Windows would open something
other than the file of that name: a device, a stream of a file, a file whose name it trims, or a file in a drive's
current directory. The rules work on text only, so no name of another machine is looked up. (They follow Microsoft's
"Naming Files, Paths, and Namespaces" and RFC 8089, appendix E. They are tested as functions, but not on Windows.)
"""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import PureWindowsPath
from urllib.parse import quote, unquote_to_bytes

from shared.coded_errors import PathError

MAX_PATH = 16_384
"""Maximum length of a path in characters, to limit the work. It may exceed PATH_MAX, because each name is opened in
its parent directory."""

_FILE_URI = "file:"
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ENCODED_SEPARATOR = re.compile(r"%(2f|5c)", re.IGNORECASE)
_WINDOWS = os.name == "nt"
_MACOS = sys.platform == "darwin"
_DEVICE_PATHS = ("\\\\?\\", "\\\\.\\", "\\??\\")
# Windows also accepts the digits ¹, ² and ³ in the names of ports.
_DEVICES = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"} | {
    port + digit for port in ("COM", "LPT") for digit in "123456789\u00b9\u00b2\u00b3"
}
_SHORT_NAME = re.compile(r"~\d")
_FORBIDDEN_CHARACTERS = frozenset(map(chr, range(32))) | frozenset('<>"|?*')


def path_of(path_or_uri: str) -> str:
    """Return the path, given the path itself or its `file:` URI. It may be relative; `~` is replaced by the home
    directory. Raises `PathError` with code `bad_path`."""
    require_valid_path(path_or_uri)
    path = path_from_uri(path_or_uri) if path_or_uri[:5].lower() == _FILE_URI else path_or_uri
    if path == "~" or path.startswith(("~/", "~" + os.sep)):
        path = os.path.expanduser("~") + path[1:]  # noqa: PTH111 (never raises)
    reason = windows_refusal(path) if _WINDOWS else None
    if reason is not None:
        raise PathError("bad_path", path_or_uri, reason)
    return path


def require_valid_path(path: str) -> None:
    """Raise `PathError` with code `bad_path` for text that can't be a path: it is empty, too long, contains NUL, or
    can't be encoded."""
    if not path:
        raise PathError("bad_path", path, "the path is empty")
    if len(path) > MAX_PATH:
        raise PathError("bad_path", path[:80] + "...", "the path is too long")
    _require_encodable(path, path)


def _require_encodable(path: str, path_or_uri: str) -> None:
    if "\0" in path:
        raise PathError("bad_path", path_or_uri, "the path contains a NUL character")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise PathError("bad_path", path_or_uri, "the path contains characters that no file name can have") from None


def components(path: str) -> list[str]:
    """Return the names in `path`, without separators and `.`. A Windows drive comes first."""
    drive, rest = os.path.splitdrive(path) if _WINDOWS else ("", path)
    if os.altsep:
        rest = rest.replace(os.altsep, os.sep)
    names = [name for name in rest.split(os.sep) if name and name != "."]  # noqa: PTH206 (keeps "..")
    return [drive, *names] if drive else names


def collapse(parts: Sequence[str], relative: bool = False) -> list[str]:
    """Return `parts` without `..`: each is dropped together with the name before it. If the path is `relative`, a
    `..` without a name before it is kept."""
    if ".." not in parts:
        return list(parts)
    collapsed: list[str] = []
    for part in parts:
        if part != "..":
            collapsed.append(part)
        elif collapsed and collapsed[-1] != "..":
            collapsed.pop()
        elif relative:
            collapsed.append(part)
    return collapsed


def uri(path: str) -> str:
    """Return the RFC 8089 URI of the absolute `path`. Bytes that are not UTF-8 are percent-encoded as they are."""
    if _WINDOWS:
        return windows_uri(path)
    return "file://" + quote(os.fsencode(path))


def path_from_uri(file_uri: str) -> str:
    """Return the absolute path of a `file:` URI. Raises `PathError` with code `bad_path`."""
    rest, authority = file_uri[len(_FILE_URI) :], ""
    if rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        # RFC 8089, section 2: localhost means this machine, like an empty authority.
        authority = "" if authority.lower() == "localhost" else authority
        if authority and not _WINDOWS:
            raise PathError(
                "bad_path", file_uri, "the URI names another host", "Write file:///path, or pass the path."
            )
    if not rest.startswith("/"):
        raise PathError("bad_path", file_uri, "the URI has no absolute path", "Write file:///path.")
    if "?" in rest or "#" in rest:
        reason = "the URI has a query or fragment"
        raise PathError("bad_path", file_uri, reason, "Write ? as %3F and # as %23 in names.")
    if _BAD_PERCENT.search(rest) or _ENCODED_SEPARATOR.search(rest):
        reason = "the URI has a broken escape or an encoded separator"
        raise PathError("bad_path", file_uri, reason, "Write % as %25 in names, or pass the path itself.")
    try:
        path = os.fsdecode(unquote_to_bytes(rest))
    except UnicodeError:
        raise PathError("bad_path", file_uri, "the URI contains characters that no file name can have") from None
    _require_encodable(path, file_uri)
    return windows_path(authority, path) if _WINDOWS else path


def fold(parts: Sequence[str]) -> list[str]:
    """Return `parts` in the form in which they are compared: in lower case on Windows, and with composed accents on
    macOS, which treats both forms of an accent as the same name."""
    if _WINDOWS:
        return [os.path.normcase(part) for part in parts]
    return [compose(part) for part in parts] if _MACOS else list(parts)


def differ_in_case(first: Sequence[str], other: Sequence[str]) -> bool:
    """Return True if two lists of components differ only in case, and this is macOS, where most but not all file
    systems ignore case. Only the files themselves show whether both paths lead to the same one."""
    if not _MACOS or len(first) != len(other):
        return False
    return all(
        compose(compose(a).casefold()) == compose(compose(b).casefold()) for a, b in zip(first, other, strict=True)
    )


def compose(name: str) -> str:
    """Return `name` with each accent and its letter as one character, if there is such a character."""
    if name.isascii():
        return name
    from unicodedata import normalize

    return normalize("NFC", name)


def windows_refusal(path: str) -> str | None:
    """Return the reason why Windows may open something other than the file at `path`; None if it does not."""
    path = path.replace("/", "\\")
    if path.startswith(_DEVICE_PATHS):
        return "the path names a device"
    pure = PureWindowsPath(path)
    if pure.drive and not pure.root:
        return "the path is relative to the current directory of a drive"
    if pure.root and not pure.drive:
        return "the path names no drive"
    rest = path[len(pure.drive) :]
    reasons = map(refusal_of_name, rest.split("\\"))
    return next((reason for reason in reasons if reason is not None), None)


def refusal_of_name(name: str) -> str | None:
    """Return the reason why Windows does not use `name` as written; None if it does."""
    if name in ("", ".", ".."):
        return None
    if ":" in name:
        return "the path names an alternate data stream"
    if name.endswith((".", " ")):
        return "a name in the path ends in a dot or a space, which Windows drops"
    if not _FORBIDDEN_CHARACTERS.isdisjoint(name):
        return "a name in the path contains a character that no file name can have"
    return "a name in the path is a device name" if is_device(name) else None


def is_device(name: str) -> bool:
    """Return True if Windows treats `name`, with any extension, as a device."""
    return name.partition(".")[0].rstrip(" ").upper() in _DEVICES


def is_short(name: str) -> bool:
    """Return True if `name` looks like the second, short name that Windows gives a file, such as `ENV~1` for
    `.env`."""
    return _SHORT_NAME.search(name) is not None


def windows_uri(path: str) -> str:
    """Return the `file:` URI of an absolute path, which may be on a share."""
    return PureWindowsPath(path).as_uri()


def windows_path(authority: str, path: str) -> str:
    """Return the Windows path of a `file:` URI. `authority` is the name of a machine or empty, and `path` is
    decoded."""
    if authority:
        return f"//{authority}{path}"
    letter, separator, rest = path[1:2], path[2:3], path[3:]
    # RFC 8089, E.2.2: some programs write C| for C:.
    has_drive = letter.isascii() and letter.isalpha() and separator in (":", "|") and rest[:1] in ("", "/")
    return f"{letter}:{rest}" if has_drive else path
