"""The state of a path: its kind, contents and metadata.

States are compared by value, because a file that undo has restored is a new inode with new times, but still counts as
the file that an earlier change left.
"""

import hashlib
import json
import os
import stat
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import NamedTuple

from pydantic_core import to_json

from servers.common.files.rooted_files import RootedFiles
from shared.program.files.entries import Entry, enter_directory, stat_entry
from shared.program.files.metadata import Attributes, attributes_at, attributes_of
from shared.program.files.system import SYSTEM

_BLOCK_BYTES = 1024 * 1024


class State(NamedTuple):
    """The state of a path: `kind` is absent, file, link or directory; `content` is the digest of a file's bytes, or
    the target of a link; `size` is in bytes; `attributes` are the extended attributes in base64.
    """

    kind: str
    content: str = ""
    size: int = 0
    mode: int = 0
    owner: int = 0
    group: int = 0
    attributes: Mapping[str, str] = {}

    def is_like(self, other: "State") -> bool:
        """Return True if both have the same kind and contents. Modes, owners and attributes may differ."""
        return (self.kind, self.content) == (other.kind, other.content)

    @property
    def stat(self) -> os.stat_result:
        """Mode, owner, group and size in the form of a `stat` result. All other fields are 0."""
        return os.stat_result((self.mode, 0, 0, 0, self.owner, self.group, self.size, 0, 0, 0))

    @property
    def raw_attributes(self) -> Attributes:
        """The extended attributes as the system returns them."""
        return {name: b64decode(value) for name, value in self.attributes.items()}


ABSENT = State("absent")
DIRECTORY = State("directory")


def digest_of(data: bytes) -> str:
    """Return the digest that is used to compare file contents."""
    return new_digest(data).hexdigest()


def file_state(data: bytes) -> State:
    """Return the state of a file with the contents `data`."""
    return State("file", digest_of(data), len(data))


def state_of(rooted: RootedFiles, entry: Entry, data: bytes | None = None) -> State:
    """Return the current state of the entry. `data` is the contents of the file, if it was read. Raises OSError, and
    PathError if it is neither a file, a directory nor a link.
    """
    status = stat_entry(entry)
    return ABSENT if status is None else present_state(rooted, entry, status, data)


def present_state(
    rooted: RootedFiles,
    entry: Entry,
    status: os.stat_result,
    data: bytes | None,
    attributes: Attributes | None = None,
) -> State:
    """Return the current state of the entry, which exists and has this `status`. `data` and `attributes` are the
    contents and the extended attributes of the file, if they were read. Raises the same errors as `state_of`.
    """
    facts = status.st_mode, status.st_uid, status.st_gid
    if stat.S_ISLNK(status.st_mode):
        return State("link", SYSTEM.read_link(entry.directory, entry.name), 0, *facts)
    if stat.S_ISDIR(status.st_mode):
        with enter_directory(entry) as descriptor:
            attributes = {} if descriptor is None else attributes_of(descriptor)
        return State("directory", "", 0, *facts, _encode_attributes(attributes))
    if data is not None:
        present = attributes_at(entry) if attributes is None else attributes
        return State("file", digest_of(data), len(data), *facts, _encode_attributes(present))
    handle = rooted.open_entry(entry._replace(stat=status), entry.place.path)
    try:
        digest, size = new_digest(), 0
        while block := os.read(handle.descriptor, _BLOCK_BYTES):
            digest.update(block)
            size += len(block)
        attributes = attributes_of(handle.descriptor)
    finally:
        os.close(handle.descriptor)
    return State("file", digest.hexdigest(), size, *facts, _encode_attributes(attributes))


def new_digest(data: bytes = b"") -> "hashlib.blake2b":
    """Return a new hash object for the contents of a file."""
    return hashlib.blake2b(data, digest_size=16)


def encode_json(facts: object) -> bytes:
    """Return tuples of numbers and strings as JSON, even if the strings are names of files that are not UTF-8."""
    try:
        return to_json(facts)
    except ValueError:
        return json.dumps(facts).encode()


def _encode_attributes(attributes: Attributes) -> dict[str, str]:
    return {name: b64encode(value).decode() for name, value in attributes.items()}
