"""What a file has besides its bytes: owner, group, permissions, and on Linux its extended attributes, in which the
access control lists and the labels of security modules are (xattr(7), acl(5)).

Trusted attributes are shown to privileged processes alone (`CAP_SYS_ADMIN`): nobody else can keep them, or know of
them.
"""

import errno
import os
import stat
import sys
from collections.abc import Mapping

from ...coded_errors import MetadataError
from .entries import Entry, open_to_read
from .system import SYSTEM

_INHERITED = ("system.posix_acl_access", "system.posix_acl_default")
"""The access control lists, which a new file may have of its directory though it shall have none."""
_OF_THE_FILE_ITSELF = {"security.capability", "security.ima", "security.evm"}
"""Any write takes the first away, as it does set-user-id; the others are sums over content and inode."""
_HAS_OWNERS = hasattr(os, "fchown")
"""Windows has no owners and modes to be given to an open file."""

Attributes = Mapping[str, bytes]
"""Extended attributes by their names."""


def attributes_of(file: int | str) -> Attributes:
    """The extended attributes of an open file, or of what is at a path, links not followed. Raises OSError."""
    if sys.platform != "linux":
        return {}
    follow = isinstance(file, int)
    try:
        names = os.listxattr(file, follow_symlinks=follow)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS):
            return {}
        raise
    wanted = (name for name in names if name not in _OF_THE_FILE_ITSELF)
    return {name: os.getxattr(file, name, follow_symlinks=follow) for name in wanted}


def attributes_at(entry: Entry) -> Attributes:
    """The extended attributes of the file at the entry. Raises OSError."""
    if sys.platform != "linux":
        return {}
    try:
        descriptor = open_to_read(entry)
    except PermissionError:
        # One that may not be read: only paths lead to its attributes (there is xattrat(2) since Linux 6.13 only).
        return attributes_of(
            entry.name if entry.directory is None else f"/proc/self/fd/{entry.directory}/{entry.name}"
        )
    try:
        return attributes_of(descriptor)
    finally:
        os.close(descriptor)


def first_mode(found: os.stat_result) -> int:
    """The mode with which a file is made that `give_metadata` is to make like `found`: its owner's alone."""
    return stat.S_IRUSR | stat.S_IWUSR if _HAS_OWNERS else stat.S_IMODE(found.st_mode)


def give_metadata(descriptor: int, found: os.stat_result, attributes: Attributes) -> list[str]:
    """Make an open file or directory like the one that was `found` and has these attributes, and tell what it can't
    have: "owner", "group", and names of attributes.

    Set-user-id and set-group-id of files are left out, as by any write. Raises MetadataError where the access control
    list, or whom it is about, can't be kept, since it may be what keeps others out; and OSError.
    """
    if sys.platform == "win32" or not _HAS_OWNERS:
        return []
    made = os.fstat(descriptor)
    lost, mode = [], stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode):
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    if made.st_uid != found.st_uid and not _is_given(descriptor, found.st_uid, -1):
        lost.append("owner")
    if made.st_gid != found.st_gid and not _is_given(descriptor, -1, found.st_gid):
        lost.append("group")
        # Another group must not read what only that one could.
        mode &= ~stat.S_IRWXG
    lost += _give_attributes(descriptor, attributes)
    if any(name in attributes and (name in lost or "group" in lost) for name in _INHERITED):
        raise MetadataError("its access control list")
    os.chmod(descriptor, mode)
    return lost


def lost_owner(found: os.stat_result, now: os.stat_result) -> list[str]:
    """What of owner and group is another one now than it was on the file that was `found`."""
    same = {"owner": now.st_uid == found.st_uid, "group": now.st_gid == found.st_gid}
    return [name for name, is_same in same.items() if not is_same]


def give_owner_to_link(new: Entry, found: os.stat_result) -> list[str]:
    """Give a link the owner and group of the one that was `found`, and tell what it can't have. Raises OSError."""
    if sys.platform == "win32" or not _HAS_OWNERS:
        return []
    made = SYSTEM.stat(new.directory, new.name)
    if (made.st_uid, made.st_gid) == (found.st_uid, found.st_gid):
        return []
    try:
        os.chown(new.name, found.st_uid, found.st_gid, dir_fd=new.directory, follow_symlinks=False)
    except PermissionError:
        return ["owner"]
    return []


def _is_given(descriptor: int, owner: int, group: int) -> bool:
    """Gives the file away, which only root may do, but for groups of one's own; whether that was allowed."""
    if sys.platform == "win32":
        return False
    try:
        os.fchown(descriptor, owner, group)
    except PermissionError:
        return False
    return True


def _give_attributes(descriptor: int, attributes: Attributes) -> list[str]:
    """Gives the file the attributes, and takes away what it has of its directory; those that it can't have."""
    if sys.platform != "linux":
        return []
    made, lost = attributes_of(descriptor), []
    for name in _INHERITED:
        if name in made and name not in attributes:
            os.removexattr(descriptor, name)
    for name, value in attributes.items():
        if made.get(name) != value:
            try:
                os.setxattr(descriptor, name, value)
            except OSError:
                lost.append(name)
    return lost
