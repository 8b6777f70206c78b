"""The native calls of Windows that `windows` needs: files opened relative to the handle of a directory.

**No machine has run these calls yet**; what is read from bytes and made into bytes here has tests, and mypy has seen
the rest as Windows would. The forms are those of Microsoft's documentation of NtCreateFile, NtSetInformationFile,
NtQueryDirectoryFile (ntifs.h) and of reparse points ([MS-FSCC] 2.1.2).

Placeholders of cloud storage are reparse points as well, and most programs are shown that
(RtlSetProcessPlaceholderCompatibilityMode). So a link is only what stands for another name, as the tag of a reparse
point says; all others count as the files or directories they are in. What is read of one whose content is not on this
machine has not been tried.
"""

import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Iterator

from shared.kit.rooted.names import windows_refusal
from shared.kit.rooted.windows import Access, Listed, Native, SharingViolation

__all__ = ["error_of", "link_target", "listed", "native_path", "renaming"]

_NUMBERS = {
    0xC000000D: errno.EINVAL,
    0xC000000F: errno.ENOENT,
    0xC0000022: errno.EACCES,
    0xC0000033: errno.EINVAL,
    0xC0000034: errno.ENOENT,
    0xC0000035: errno.EEXIST,
    0xC000003A: errno.ENOENT,
    0xC0000044: errno.ENOSPC,
    0xC0000054: errno.EACCES,
    0xC000007F: errno.ENOSPC,
    0xC00000A2: errno.EROFS,
    0xC00000BA: errno.EISDIR,
    0xC00000BE: errno.ENOENT,
    0xC00000CC: errno.ENOENT,
    0xC00000D4: errno.EXDEV,
    0xC0000101: errno.ENOTEMPTY,
    0xC0000103: errno.ENOTDIR,
    0xC0000106: errno.ENAMETOOLONG,
    0xC000011F: errno.EMFILE,
    0xC0000121: errno.EACCES,
    0xC0000123: errno.ENOENT,
    0xC0000243: errno.EACCES,
    0xC0000265: errno.EMLINK,
    0xC0000275: errno.EINVAL,
}
"""What POSIX calls the failures of ntstatus.h; any other is EIO."""
_IN_THE_WAY = {0xC0000043, 0xC0000056}
"""STATUS_SHARING_VIOLATION, STATUS_DELETE_PENDING"""
_HELD = {0xC0000022, 0xC0000121}
"""STATUS_ACCESS_DENIED, STATUS_CANNOT_DELETE: also what is said when a file loses its name while others have it open,
such as a virus scanner."""
_NO_MORE_FILES, _NO_SUCH_FILE = 0x80000006, 0xC000000F
_UNKNOWN_CLASS = {0xC0000003, 0xC000000D, 0xC0000010, 0xC00000BB}
"""How a file system refuses the newer forms of an act, which leave open files alone."""

_SYMLINK, _MOUNT_POINT = 0xA000000C, 0xA0000003
_STANDS_FOR_A_NAME = 0x20000000
"""The bit of a tag that IsReparseTagNameSurrogate looks at."""
_IS_DIRECTORY, _IS_REPARSE_POINT = 0x10, 0x400
_LISTED = struct.Struct("<II 4q qq III")
"""FILE_FULL_DIR_INFORMATION up to the name; where a reparse point stands, the last number is its tag."""
_EXACT = ("st_atime", "st_mtime", "st_ctime", "st_atime_ns", "st_mtime_ns", "st_ctime_ns")


def error_of(status: int, takes_name: bool = False) -> OSError:
    """The error for an NTSTATUS that tells of a failure; `takes_name` where the act was to take a name away."""
    status &= 0xFFFFFFFF
    if status in _IN_THE_WAY or (takes_name and status in _HELD):
        return SharingViolation(errno.EACCES, os.strerror(errno.EACCES))
    number = _NUMBERS.get(status, errno.EIO)
    return OSError(number, os.strerror(number))


def native_path(path: str) -> str:
    """An absolute path with a drive, or of a share, as the kernel has it."""
    return f"\\??\\UNC{path[1:]}" if path.startswith("\\\\") else f"\\??\\{path}"


def link_target(data: bytes) -> str:
    """Where a REPARSE_DATA_BUFFER leads: a path relative to the directory of the link, or an absolute one. Raises
    OSError EINVAL for what is no link or leads to no path, such as to a volume without a letter."""
    tag, _, _ = struct.unpack_from("<IHH", data)
    if tag not in (_SYMLINK, _MOUNT_POINT):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    offset, length = struct.unpack_from("<HH", data, 8)
    names, is_relative = 16, False
    if tag == _SYMLINK:
        names, is_relative = 20, bool(struct.unpack_from("<I", data, 16)[0] & 1)
    target = data[names + offset : names + offset + length].decode("utf-16-le", "surrogatepass")
    if target.startswith("\\??\\UNC\\"):
        target = f"\\{target[7:]}"
    elif target.startswith("\\??\\"):
        target = target[4:]
    # A target that begins at the root of a drive, or of the current directory of one, is not a path to be followed.
    if windows_refusal(target) is not None or is_relative == (target[1:2] == ":" or target.startswith("\\\\")):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return target


def listed(data: bytes) -> Iterator[Listed]:
    """The entries of a buffer of FILE_FULL_DIR_INFORMATION, but for "." and ".."."""
    at, following = 0, -1
    while following:
        following, _, *_, attributes, length, tag = _LISTED.unpack_from(data, at)
        begin = at + _LISTED.size
        name = data[begin : begin + length].decode("utf-16-le", "surrogatepass")
        if name not in (".", ".."):
            yield Listed(name, _mode(attributes, tag))
        at += following


def renaming(flags: int, directory: int, name: str) -> bytes:
    """FILE_RENAME_INFORMATION, and FILE_LINK_INFORMATION, which has the same form."""
    encoded = name.encode("utf-16-le", "surrogatepass")
    form = "<I4xQI" if ctypes.sizeof(ctypes.c_void_p) == 8 else "<III"
    head = struct.pack(form, flags, directory, len(encoded))
    # The form has room for one character and for what its size is rounded up by.
    return (head + encoded).ljust(24, b"\0")


def _mode(attributes: int, tag: int) -> int:
    # One that is neither a symbolic link nor a junction is not for us to open either: a link that leads nowhere.
    if attributes & _IS_REPARSE_POINT and tag & _STANDS_FOR_A_NAME:
        return stat.S_IFLNK
    return stat.S_IFDIR if attributes & _IS_DIRECTORY else stat.S_IFREG


if sys.platform == "win32":
    import msvcrt
    from ctypes import wintypes

    _ACCESS = {
        Access.LOOK: (0x100080, 1, 0, os.O_RDONLY),
        Access.PASS: (0x1000A0, 1, 0, os.O_RDONLY),
        Access.LIST: (0x1000A1, 1, 0, os.O_RDONLY),
        Access.READ: (0x120089, 1, 0, os.O_RDONLY),
        Access.APPEND: (0x120196, 1, 0, os.O_WRONLY | os.O_APPEND),
        Access.LINK: (0x100180, 1, 0, os.O_RDONLY),
        Access.MOVE: (0x110080, 1, 0, os.O_RDONLY),
        Access.CREATE: (0x120196, 2, 0x40, os.O_WRONLY),
        Access.MAKE_DIRECTORY: (0x1000A1, 2, 0x1, os.O_RDONLY),
    }
    """For each purpose the access mask; the disposition, FILE_OPEN or FILE_CREATE; FILE_NON_DIRECTORY_FILE or
    FILE_DIRECTORY_FILE; and what the C library is told of the handle."""
    _SHARED = 0x7
    """FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE"""
    _OPTIONS = 0x200020
    """FILE_OPEN_REPARSE_POINT | FILE_SYNCHRONOUS_IO_NONALERT"""
    _NO_CASE = 0x40
    """OBJ_CASE_INSENSITIVE"""
    _GET_REPARSE_POINT = 0x900A8
    _SINCE_1601 = 116_444_736_000_000_000

    class _String(ctypes.Structure):
        _fields_ = [
            ("length", wintypes.USHORT),
            ("most", wintypes.USHORT),
            ("buffer", ctypes.c_void_p),
        ]

    class _Attributes(ctypes.Structure):
        _fields_ = [
            ("length", wintypes.ULONG),
            ("directory", wintypes.HANDLE),
            ("name", ctypes.POINTER(_String)),
            ("attributes", wintypes.ULONG),
            ("security", ctypes.c_void_p),
            ("quality", ctypes.c_void_p),
        ]

    class _Status(ctypes.Structure):
        _fields_ = [("status", ctypes.c_void_p), ("information", ctypes.c_size_t)]

    class Ntdll:
        """See `windows.Native`."""

        def __init__(self) -> None:
            self._nt = ctypes.WinDLL("ntdll")
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            for function in ("NtCreateFile", "NtSetInformationFile", "NtQueryDirectoryFile"):
                getattr(self._nt, function).restype = wintypes.LONG

        def open_root(self, path: str) -> int:
            """The directory at an absolute path."""
            return self._open(None, native_path(path), Access.PASS)

        def open_relative(self, directory: int, name: str, access: Access) -> int:
            """What has that name in a directory, "." itself."""
            return self._open(_handle(directory), "" if name == "." else name, access)

        def list(self, directory: int) -> list[Listed]:
            """All that is in a directory."""
            buffer, status, found = ctypes.create_string_buffer(1 << 16), _Status(), list[Listed]()
            from_start = True
            while True:
                result = self._nt.NtQueryDirectoryFile(
                    *(_handle(directory), None, None, None, ctypes.byref(status), buffer, len(buffer), 2),
                    *(False, None, from_start),
                )
                if result & 0xFFFFFFFF in (_NO_MORE_FILES, _NO_SUCH_FILE):
                    return found
                _require(result)
                found += listed(buffer.raw)
                from_start = False

        def stat(self, descriptor: int) -> os.stat_result:
            """What is open; a reparse point is a link."""
            found = os.fstat(descriptor)
            information = (wintypes.DWORD * 2)()
            # FileAttributeTagInfo
            if not self._kernel.GetFileInformationByHandleEx(_handle(descriptor), 9, ctypes.byref(information), 8):
                raise ctypes.WinError(ctypes.get_last_error())
            if not stat.S_ISLNK(_mode(*information)):
                return found
            exact = {name: getattr(found, name) for name in _EXACT}
            return os.stat_result((stat.S_IFLNK | 0o777, *found[1:10]), exact)

        def read_link(self, descriptor: int) -> str:
            """Where a link or a junction leads."""
            buffer, size = ctypes.create_string_buffer(1 << 14), wintypes.DWORD()
            if not self._kernel.DeviceIoControl(
                *(_handle(descriptor), _GET_REPARSE_POINT, None, 0, buffer, len(buffer), ctypes.byref(size), None)
            ):
                raise ctypes.WinError(ctypes.get_last_error())
            return link_target(buffer.raw[: size.value])

        def rename(self, descriptor: int, directory: int, name: str, replace: bool) -> None:
            """Gives what is open that name in a directory."""
            target = _handle(directory).value or 0
            # FileRenameInformationEx with POSIX semantics, or else FileRenameInformation.
            forms = (65, renaming(2 | replace, target, name)), (10, renaming(replace, target, name))
            self._set(descriptor, *forms, takes_name=replace)

        def link(self, descriptor: int, directory: int, name: str) -> None:
            """Gives the file that is open a second name."""
            self._set(descriptor, (11, renaming(0, _handle(directory).value or 0, name)))

        def remove(self, descriptor: int) -> None:
            """Takes away the name of what is open."""
            # FileDispositionInformationEx with POSIX semantics, or else FileDispositionInformation.
            self._set(descriptor, (64, struct.pack("<I", 3)), (13, b"\1"), takes_name=True)

        def set_times(self, descriptor: int, nanoseconds: int) -> None:
            """Sets the times of the last change and the last access."""
            time = ctypes.c_longlong(nanoseconds // 100 + _SINCE_1601)
            if not self._kernel.SetFileTime(_handle(descriptor), None, ctypes.byref(time), ctypes.byref(time)):
                raise ctypes.WinError(ctypes.get_last_error())

        def _open(self, directory: wintypes.HANDLE | None, name: str, access: Access) -> int:
            mask, disposition, kind, flags = _ACCESS[access]
            encoded = name.encode("utf-16-le", "surrogatepass")
            buffer = ctypes.create_string_buffer(encoded)
            string = _String(len(encoded), len(encoded), ctypes.addressof(buffer))
            size = ctypes.sizeof(_Attributes)
            attributes = _Attributes(size, directory, ctypes.pointer(string), _NO_CASE, None, None)
            handle, status = wintypes.HANDLE(), _Status()
            result = self._nt.NtCreateFile(
                *(ctypes.byref(handle), mask, ctypes.byref(attributes), ctypes.byref(status), None),
                *(0x80, _SHARED, disposition, _OPTIONS | kind, None, 0),
            )
            _require(result)
            try:
                return msvcrt.open_osfhandle(handle.value or 0, flags | os.O_BINARY | os.O_NOINHERIT)
            except OSError:
                self._kernel.CloseHandle(handle)
                raise

        def _set(self, descriptor: int, *forms: tuple[int, bytes], takes_name: bool = False) -> None:
            """Sets information in the first of these forms that the file system knows; for `takes_name` see
            `error_of`."""
            result = 0
            for kind, data in forms:
                status = _Status()
                result = self._nt.NtSetInformationFile(
                    _handle(descriptor), ctypes.byref(status), data, len(data), kind
                )
                if result & 0xFFFFFFFF not in _UNKNOWN_CLASS:
                    break
            _require(result, takes_name)

    def _handle(descriptor: int) -> wintypes.HANDLE:
        return wintypes.HANDLE(msvcrt.get_osfhandle(descriptor))

    def _require(status: int, takes_name: bool = False) -> None:
        if status < 0:
            raise error_of(status, takes_name)

    _IS_NATIVE: type[Native] = Ntdll
    """Has the types of all calls compared."""
