"""The metadata of a file: owner, group, permissions, and on Linux its extended attributes, which contain the access
control lists and the labels of security modules (xattr(7), acl(5)).

The attributes in the namespace "trusted" are visible only to privileged processes (`CAP_SYS_ADMIN`): other processes
can neither see nor copy them.
"""

import errno
import os
import stat
import sys
from collections.abc import Mapping

from ...coded_errors import MetadataError
from .entries import Entry, open_to_read
from .system import SYSTEM

_ACCESS_CONTROL_LISTS = ("system.posix_acl_access", "system.posix_acl_default")
"""The access control lists. A new file may inherit them from its directory, although the original file has none."""
_NOT_COPIED = {"security.capability", "security.ima", "security.evm"}
"""Attributes that are not copied: any write removes the first one, like set-user-id, and the others are checksums of
contents and inode."""
_HAS_OWNERS = hasattr(os, "fchown")
"""False on Windows, where an open file can't be given an owner or a mode."""

Attributes = Mapping[str, bytes]
"""Extended attributes by their names."""


def attributes_of(file: int | str) -> Attributes:
    """Return the extended attributes of an open file, or of the file at a path, without following links. Raises
    OSError."""
    if sys.platform != "linux":
        return {}
    follow = isinstance(file, int)
    try:
        names = os.listxattr(file, follow_symlinks=follow)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS):
            return {}
        raise
    selected = (name for name in names if name not in _NOT_COPIED)
    return {name: os.getxattr(file, name, follow_symlinks=follow) for name in selected}


def attributes_at(entry: Entry) -> Attributes:
    """Return the extended attributes of the file at the entry. Raises OSError."""
    if sys.platform != "linux":
        return {}
    try:
        descriptor = open_to_read(entry)
    except PermissionError:
        # The attributes of a file that can't be opened can only be read by its path (getxattrat(2) exists only since
        # Linux 6.13).
        return attributes_of(
            entry.name if entry.directory is None else f"/proc/self/fd/{entry.directory}/{entry.name}"
        )
    try:
        return attributes_of(descriptor)
    finally:
        os.close(descriptor)


def initial_mode(original: os.stat_result) -> int:
    """Return the mode with which a file is created, which lets only its owner access it until `set_metadata` gives it
    the metadata of `original`."""
    return stat.S_IRUSR | stat.S_IWUSR if _HAS_OWNERS else stat.S_IMODE(original.st_mode)


def set_metadata(descriptor: int, original: os.stat_result, attributes: Attributes) -> list[str]:
    """Give an open file or directory the owner, group and mode of `original` and these attributes, and return what
    could not be set: "owner", "group", and names of attributes. Raises OSError, and MetadataError if an access
    control list, or the group that it refers to, can't be copied, since the list may protect the file."""
    if sys.platform == "win32" or not _HAS_OWNERS:
        return []
    current_stat = os.fstat(descriptor)
    unset, mode = [], stat.S_IMODE(original.st_mode)
    if not stat.S_ISDIR(original.st_mode):
        # Any write removes set-user-id and set-group-id.
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    if current_stat.st_uid != original.st_uid and not _set_owner(descriptor, original.st_uid, -1):
        unset.append("owner")
    if current_stat.st_gid != original.st_gid and not _set_owner(descriptor, -1, original.st_gid):
        unset.append("group")
        # The new group must not get the access that the previous group had.
        mode &= ~stat.S_IRWXG
    unset += _set_attributes(descriptor, attributes)
    if any(name in attributes and (name in unset or "group" in unset) for name in _ACCESS_CONTROL_LISTS):
        raise MetadataError("its access control list")
    os.chmod(descriptor, mode)
    return unset


def lost_owner(original: os.stat_result, now: os.stat_result) -> list[str]:
    """Return a list with "owner" and "group", as far as they differ from those of `original`."""
    same = {"owner": now.st_uid == original.st_uid, "group": now.st_gid == original.st_gid}
    return [name for name, is_same in same.items() if not is_same]


def set_link_owner(new: Entry, original: os.stat_result) -> list[str]:
    """Give a link the owner and group of the link `original`, and return `["owner"]` if that is not permitted. Raises
    OSError."""
    if sys.platform == "win32" or not _HAS_OWNERS:
        return []
    current_stat = SYSTEM.stat(new.directory, new.name)
    if (current_stat.st_uid, current_stat.st_gid) == (original.st_uid, original.st_gid):
        return []
    try:
        os.chown(new.name, original.st_uid, original.st_gid, dir_fd=new.directory, follow_symlinks=False)
    except PermissionError:
        return ["owner"]
    return []


def _set_owner(descriptor: int, owner: int, group: int) -> bool:
    """Change the owner or the group, where -1 leaves one unchanged. Return False if that is not permitted: only root
    may change the owner, or set a group that the user does not belong to."""
    if sys.platform == "win32":
        return False
    try:
        os.fchown(descriptor, owner, group)
    except PermissionError:
        return False
    return True


def _set_attributes(descriptor: int, attributes: Attributes) -> list[str]:
    """Set the attributes of the file, and remove access control lists that it has inherited from its directory.
    Return the names of the attributes that can't be set."""
    if sys.platform != "linux":
        return []
    current_attributes, unset = attributes_of(descriptor), []
    for name in _ACCESS_CONTROL_LISTS:
        if name in current_attributes and name not in attributes:
            os.removexattr(descriptor, name)
    for name, value in attributes.items():
        if current_attributes.get(name) != value:
            try:
                os.setxattr(descriptor, name, value)
            except OSError:
                unset.append(name)
    return unset
