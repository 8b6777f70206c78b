"""Names and paths: what is refused, and what reaches not every client or system as it is written."""

import re

__all__ = ["is_hidden", "objections", "path_refusal"]

_SAFE = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST = 64
_DEVICES = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[1-9\u00b9\u00b2\u00b3])", re.IGNORECASE)
_IMPOSSIBLE = re.compile(r'[\x00-\x1f<>"|?*:\\]')


def objections(name: str) -> tuple[str, ...]:
    """What can go wrong with the name of a prompt, though it is served."""
    found = []
    if _SAFE.fullmatch(name) is None:
        found.append("clients that make a command of it replace all characters but A-Z a-z 0-9 _ -")
    if len(name) > _LONGEST:
        found.append(f"it has more than {_LONGEST} characters, where some clients cut it")
    if _is_device(name):
        found.append("Windows can't have a file of that name")
    return tuple(found)


def path_refusal(path: str) -> str | None:
    """Why `path` is no path of a file within a library, on whatever system it is read; None where it is one."""
    names = path.split("/")
    if path.startswith("/"):
        return "is no path within the library"
    if any(name in ("", ".", "..") for name in names):
        return "has an empty name, . or .. in it"
    if _IMPOSSIBLE.search(path):
        return "has a character that Windows has in no name; / stands between names"
    if any(name.endswith((".", " ")) or _is_device(name) for name in names):
        return "has a name that Windows can't have"
    return None


def is_hidden(path: str) -> bool:
    """Whether a file or a directory on the way to it has a name like .x."""
    return any(name.startswith(".") and name.strip(".") for name in path.split("/"))


def _is_device(name: str) -> bool:
    """Whether Windows takes the name for that of a device, whatever extension it has."""
    return _DEVICES.fullmatch(name.partition(".")[0].rstrip(" ")) is not None
