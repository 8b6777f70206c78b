"""The checks of a skill before a host uses it (SEP-2640, Integrity and Verification), without I/O.

If the digests match, the server is consistent, but not necessarily trustworthy: digests and files come from the same
source.
"""

import hashlib
import re
import unicodedata
from typing import Any, Literal
from urllib.parse import unquote

from ...errors import McpError
from ...protocol.types.skills import DYNAMIC, MANIFEST, MAX_BYTES, MAX_FILES, SkillEntry, SkillResource
from ...yaml import YamlError, YamlLimits, read_yaml

Check = Literal["entry", "limits", "dynamic", "unlisted", "contents", "size", "digest", "frontmatter"]
"""The check that failed, in this order: the entry itself, the number and size of its files, the missing list of
files, a file that is not listed, a result without the file's contents, and the file's size, digest or front
matter."""

_FRONTMATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_LIMITS = YamlLimits(characters=64_000, values=10_000, depth=12)


class SkillRefused(McpError):
    """Raised if a skill is refused, or its use is stopped, because the `check` of the file at `uri` has failed. The
    skill may have changed since its entry was fetched: it can be loaded again with a new entry and a new consent of
    the user."""

    def __init__(self, uri: str, check: Check, reason: str) -> None:
        super().__init__(f"{uri[:200]}: {reason}")
        self.uri = uri
        self.check = check
        self.reason = reason


def root_of(entry: SkillEntry) -> str:
    """Return the URI of the skill's directory."""
    return entry.uri.removesuffix(f"/{MANIFEST}")


def is_inside(root: str, uri: str) -> bool:
    """Return True if `uri` names a file below the directory `root`, however its path is encoded."""
    path = uri.removeprefix(f"{root}/")
    return path != uri and {"", ".", ".."}.isdisjoint(re.split(r"[/\\]", unquote(path)))


def check_entry(entry: SkillEntry) -> None:
    """Raise SkillRefused if an entry contradicts itself, so that the skill can't be loaded."""
    root, name = root_of(entry), entry.frontmatter.get("name")
    if root == entry.uri or not isinstance(name, str) or name != root.rpartition("/")[2]:
        raise SkillRefused(entry.uri, "entry", f"its URI does not end with its name and {MANIFEST}")
    if not isinstance(entry.frontmatter.get("description"), str):
        raise SkillRefused(entry.uri, "entry", "it has no description")
    if entry.resources == DYNAMIC:
        return
    uris = [file.uri for file in entry.resources]
    # Differently encoded URIs may name the same file.
    if entry.uri not in uris or len({unicodedata.normalize("NFC", unquote(uri)) for uri in uris}) < len(uris):
        raise SkillRefused(entry.uri, "entry", f"it does not list {MANIFEST}, or it lists a file twice")
    outside = next((uri for uri in uris if not is_inside(root, uri)), None)
    if outside is not None:
        raise SkillRefused(entry.uri, "entry", f"it lists a file outside its directory: {outside[:200]!r}")


def check_limits(entry: SkillEntry) -> None:
    """Raise SkillRefused for a skill that exceeds the size that every host must support."""
    if entry.resources == DYNAMIC:
        return
    files, size = len(entry.resources), sum(file.size for file in entry.resources)
    if files > MAX_FILES or size > MAX_BYTES:
        reason = f"{files} files with {size:,} bytes exceed the limit of {MAX_FILES} with {MAX_BYTES:,}"
        raise SkillRefused(entry.uri, "limits", reason)


def check_file(listed: SkillResource, data: bytes) -> None:
    """Raise SkillRefused if `data` does not match the entry of this file."""
    if len(data) != listed.size:
        raise SkillRefused(listed.uri, "size", f"it has {len(data):,} bytes instead of {listed.size:,}")
    if f"sha256:{hashlib.sha256(data).hexdigest()}" != listed.digest:
        raise SkillRefused(listed.uri, "digest", "its content does not match the list")


def check_frontmatter(entry: SkillEntry, manifest: str) -> None:
    """Raise SkillRefused if any key in the front matter of SKILL.md differs from the entry. The front matter is read
    as YAML 1.2 (core schema)."""
    frontmatter = _FRONTMATTER.match(manifest)
    if frontmatter is None:
        raise SkillRefused(entry.uri, "frontmatter", "it must begin with front matter enclosed by two `---` lines")
    try:
        parsed = read_yaml(frontmatter[1], what="the front matter", line=2, limits=_LIMITS)
    except YamlError as error:
        raise SkillRefused(entry.uri, "frontmatter", str(error)) from None
    if not isinstance(parsed, dict):
        raise SkillRefused(entry.uri, "frontmatter", "the front matter is not a mapping of keys to values")
    listed, missing = entry.frontmatter, object()
    for key in {**listed, **parsed}:
        if not _is_same(listed.get(key, missing), parsed.get(key, missing)):
            raise SkillRefused(entry.uri, "frontmatter", f"{key[:80]!r} does not match the list")


def _is_same(first: Any, second: Any) -> bool:
    """Return True if two values are the same JSON: true does not equal 1, but 1.0 does."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_is_same(item, second[key]) for key, item in first.items())
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_is_same, first, second))
    return bool(first == second)
