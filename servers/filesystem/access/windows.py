"""What Windows makes of a path besides a name beneath a directory: rules for text, the same on every system.

A path is refused where Windows would open something else than what it spells: a device, a stream of a file, a file
whose name it trims, or one in whatever directory is current on a drive. No rule touches a file, so the name of
another machine is never looked up. (Made after Microsoft's "Naming Files, Paths, and Namespaces" and RFC 8089,
appendix E, and tested as functions; no test has run on Windows.)
"""

from pathlib import PureWindowsPath

_DEVICE_PATHS = ("\\\\?\\", "\\\\.\\", "\\??\\")
_DEVICES = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"} | {
    port + digit for port in ("COM", "LPT") for digit in "123456789\u00b9\u00b2\u00b3"
}
_IMPOSSIBLE = frozenset(map(chr, range(32))) | frozenset('<>"|?*')


def refusal(path: str) -> str | None:
    """Why `path` is no plain path of a file or directory; None where it is one."""
    path = path.replace("/", "\\")
    if path.startswith(_DEVICE_PATHS):
        return "the path names a device"
    pure = PureWindowsPath(path)
    if pure.drive and not pure.root:
        return "the path is relative to the current directory of a drive"
    if pure.root and not pure.drive:
        return "the path names no drive"
    rest = path[len(pure.drive) :]
    reasons = map(_refusal_of_name, rest.split("\\"))
    return next((reason for reason in reasons if reason is not None), None)


def _refusal_of_name(name: str) -> str | None:
    if name in ("", ".", ".."):
        return None
    if ":" in name:
        return "the path names an alternate data stream"
    if name.endswith((".", " ")):
        return "a name in the path ends in a dot or a space, which Windows leaves out"
    if not _IMPOSSIBLE.isdisjoint(name):
        return "a name in the path holds a character that no file name can have"
    if name.partition(".")[0].rstrip(" ").upper() in _DEVICES:
        return "a name in the path is that of a device"
    return None


def uri_of(path: str) -> str:
    """The `file:` URI of an absolute path, that of a share included."""
    return PureWindowsPath(path).as_uri()


def path_of(authority: str, path: str) -> str:
    """The path of a `file:` URI with this authority, which names a machine, or nobody, and this decoded path."""
    if authority:
        return f"//{authority}{path}"
    letter, mark, rest = path[1:2], path[2:3], path[3:]
    has_drive = letter.isascii() and letter.isalpha() and mark in (":", "|") and rest[:1] in ("", "/")
    return f"{letter}:{rest}" if has_drive else path
