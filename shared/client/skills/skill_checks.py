"""What a host verifies of a skill before it uses it (SEP-2640, Integrity and Verification), without I/O.

A match says that a server is consistent, and nothing about whom to trust: digests come from where the files do.
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
"""What was found wanting: the entry itself, how much it lists, that it lists nothing, a file that it does not list, a
result that holds no such file, and its size, digest and head."""

_HEAD = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_LIMITS = YamlLimits(characters=64_000, values=10_000, depth=12)


class SkillRefused(McpError):
    """A skill is not used, or not any more, as the `check` of what is at `uri` failed. It may have changed since its
    entry was fetched: with a new one, and the user's new consent, it can be loaded again."""

    def __init__(self, uri: str, check: Check, reason: str) -> None:
        super().__init__(f"{uri[:200]}: {reason}")
        self.uri = uri
        self.check = check
        self.reason = reason


def root_of(entry: SkillEntry) -> str:
    """The URI of the skill's directory."""
    return entry.uri.removesuffix(f"/{MANIFEST}")


def inside(root: str, uri: str) -> bool:
    """Whether `uri` is that of a file beneath the directory `root`, however its path is written."""
    path = uri.removeprefix(f"{root}/")
    return path != uri and {"", ".", ".."}.isdisjoint(re.split(r"[/\\]", unquote(path)))


def check_entry(entry: SkillEntry) -> None:
    """Raises SkillRefused where an entry contradicts itself, so that nobody could load it."""
    root, name = root_of(entry), entry.frontmatter.get("name")
    if root == entry.uri or not isinstance(name, str) or name != root.rpartition("/")[2]:
        raise SkillRefused(entry.uri, "entry", f"its URI does not end in its name and {MANIFEST}")
    if not isinstance(entry.frontmatter.get("description"), str):
        raise SkillRefused(entry.uri, "entry", "it has no description")
    if entry.resources == DYNAMIC:
        return
    uris = [one.uri for one in entry.resources]
    if entry.uri not in uris or len({_same_file(uri) for uri in uris}) < len(uris):
        raise SkillRefused(entry.uri, "entry", f"it does not list {MANIFEST}, or it lists a file twice")
    stray = next((uri for uri in uris if not inside(root, uri)), None)
    if stray is not None:
        raise SkillRefused(entry.uri, "entry", f"it lists a file that is not its own: {stray[:200]!r}")


def _same_file(uri: str) -> str:
    """What two URIs of one file have in common: its path, however that is written."""
    return unicodedata.normalize("NFC", unquote(uri))


def check_limits(entry: SkillEntry) -> None:
    """Raises SkillRefused for a skill that is larger than every host must support."""
    if entry.resources == DYNAMIC:
        return
    files, size = len(entry.resources), sum(one.size for one in entry.resources)
    if files > MAX_FILES or size > MAX_BYTES:
        reason = f"{files} files with {size:,} bytes are more than {MAX_FILES} with {MAX_BYTES:,}"
        raise SkillRefused(entry.uri, "limits", reason)


def check_file(listed: SkillResource, data: bytes) -> None:
    """Raises SkillRefused where `data` is not what the entry says of this file."""
    if len(data) != listed.size:
        raise SkillRefused(listed.uri, "size", f"it has {len(data):,} bytes in place of {listed.size:,}")
    if f"sha256:{hashlib.sha256(data).hexdigest()}" != listed.digest:
        raise SkillRefused(listed.uri, "digest", "its content is not what was listed")


def check_head(entry: SkillEntry, manifest: str) -> None:
    """Raises SkillRefused where SKILL.md does not say of itself what the entry says, key by key. It is read as
    YAML 1.2 (core schema)."""
    head = _HEAD.match(manifest)
    if head is None:
        raise SkillRefused(entry.uri, "frontmatter", "it does not begin with front matter between two lines of ---")
    try:
        found = read_yaml(head[1], what="the front matter", line=2, limits=_LIMITS)
    except YamlError as error:
        raise SkillRefused(entry.uri, "frontmatter", str(error)) from None
    if not isinstance(found, dict):
        raise SkillRefused(entry.uri, "frontmatter", "the front matter is not a mapping of keys to values")
    listed, missing = entry.frontmatter, object()
    for key in {**listed, **found}:
        if not _same(listed.get(key, missing), found.get(key, missing)):
            raise SkillRefused(entry.uri, "frontmatter", f"{key[:80]!r} is not what was listed")


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: true is no 1, and 1.0 is."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
