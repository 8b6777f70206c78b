"""The rules of Windows as functions of text; nothing here has run on Windows."""

import ntpath
from pathlib import PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.kit.rooted.names import windows_path, windows_refusal, windows_uri

DEVICE = "the path names a device"
CURRENT = "the path is relative to the current directory of a drive"
NO_DRIVE = "the path names no drive"
STREAM = "the path names an alternate data stream"
TRIMMED = "a name in the path ends in a dot or a space, which Windows leaves out"
CHARACTER = "a name in the path holds a character that no file name can have"
DEVICE_NAME = "a name in the path is that of a device"
WRONG = {
    DEVICE: [r"\\.\PhysicalDrive0", r"\\?\C:\x", "//?/C:/x", "//./pipe/x", r"\??\C:\x", r"\\?\UNC\a\b"],
    CURRENT: ["C:x", "c:", r"C:x\y", "C:..", "C:."],
    NO_DRIVE: [r"\x", "/etc/passwd", "/"],
    STREAM: ["a.txt:b", r"C:\a.txt:b:$DATA", "dir::$INDEX_ALLOCATION", r"x\C:\y", ":x"],
    TRIMMED: ["a.", "a ", "a./b", r"C:\.env.", "...", ".. /x"],
    CHARACTER: ["a*", "a?b", "a|b", '"a"', "<a>", "a\tb", "a\x00"],
    DEVICE_NAME: [
        *("NUL", "con", r"C:\x\AUX", "a/PRN.txt", "nul.tar.gz", "COM1", "lpt9.log", "CON .txt", "COM\u00b9"),
        *("conin$", "./nul"),
    ],
}


@pytest.mark.parametrize(("reason", "path"), [(reason, path) for reason in WRONG for path in WRONG[reason]])
def test_what_windows_takes_for_something_else_is_refused(reason, path):
    assert windows_refusal(path) == reason


@pytest.mark.parametrize(
    "path",
    [
        *("a", r"a\b.txt", "a/b", ".", "..", r"..\x", r"C:\\", "C:/x/y.txt", r"c:\a b\.env", r"C:\x\..\y"),
        *(
            "COM",
            "COM10",
            "console",
            "nul1",
            "x.nul",
            "a.b.c",
            r"\\server\share",
            r"\\server\share\x",
            "//server/share/x",
        ),
    ],
)
def test_plain_paths_are_not(path):
    assert windows_refusal(path) is None


def is_reserved(path):
    """What Python says of it, which has changed the place where it says so."""
    ask = getattr(ntpath, "isreserved", None)
    return PureWindowsPath(path).is_reserved() if ask is None else ask(path)


@pytest.mark.parametrize("name", ["NUL", "aux.h", "COM1", "LPT\u00b2", "CONOUT$", "CON .x", "a", "COM0", "auxiliary"])
def test_devices_are_those_that_python_knows(name):
    assert (windows_refusal(name) is not None) == is_reserved(name)


NAMES = st.text(st.characters(codec="ascii"), max_size=5) | st.sampled_from(
    ["..", ".", "C:", "NUL", " ", "x:y", "\\"]
)


@given(st.lists(NAMES).map("\\".join))
def test_what_is_taken_stays_relative_or_names_its_drive(path):
    if windows_refusal(path) is None:
        pure = PureWindowsPath(path)
        assert pure.is_absolute() or not (pure.drive or pure.root)
        assert not is_reserved(path)


@pytest.mark.parametrize(
    ("authority", "path", "expected"),
    [
        ("", "/C:/a b", r"C:\a b"),
        ("", "/c|/x", r"c:\x"),
        ("", "/C:", "C:"),
        ("", "/x/C:/y", r"\x\C:\y"),
        ("", "/Cx/y", r"\Cx\y"),
        ("server", "/share/x", r"\\server\share\x"),
        ("", "//server/share/x", r"\\server\share\x"),
    ],
)
def test_the_path_of_a_uri(authority, path, expected):
    assert PureWindowsPath(windows_path(authority, path)) == PureWindowsPath(expected)


def test_the_uri_of_a_path():
    assert windows_uri("C:\\a b\\c#d") == "file:///C:/a%20b/c%23d"
    assert windows_uri(r"\\server\share\x") == "file://server/share/x"
