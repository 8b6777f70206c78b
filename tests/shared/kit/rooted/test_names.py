"""What other systems make of names, as functions of text; nothing here has run on them."""

import importlib.util
import ntpath
import os
import sys
import types
from pathlib import PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.kit.errors import PathError
from shared.kit.rooted import names
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


def names_on(monkeypatch, system):
    """The module as it is on another system: what it asks of the system is answered as there."""
    other = types.ModuleType("os")
    other.__dict__.update(vars(os))
    if system == "win32":
        other.__dict__.update(name="nt", path=ntpath, sep="\\", altsep="/")
    spec = importlib.util.spec_from_file_location("names_elsewhere", names.__file__)
    module = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "os", other)
        patched.setattr(sys, "platform", system)
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def on_windows(monkeypatch):
    return names_on(monkeypatch, "win32")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (r"C:\a\.\b/c", ["C:", "a", "b", "c"]),
        ("C:/", ["C:"]),
        (r"\\server\share\a", [r"\\server\share", "a"]),
        ("//server/share/a", ["//server/share", "a"]),
        (r"a\..\b", ["a", "..", "b"]),
        (r"C:\PROGRA~1\x", ["C:", "PROGRA~1", "x"]),
    ],
)
def test_windows_splits_a_path_as_python_does(on_windows, path, expected):
    assert on_windows.components(path) == expected
    drive, rest = ntpath.splitdrive(path)
    assert [drive] * bool(drive) + [
        name for name in ntpath.normpath(rest).split("\\") if name
    ] == on_windows.collapse(expected)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"C:\Users\Ann", "c:/users/ANN"),
        (r"\\Server\Share\x", "//server/share/X"),
        ("D:\\\u00c4", "d:\\\u00e4"),
    ],
)
def test_windows_takes_no_notice_of_case_and_of_the_kind_of_slash(on_windows, one, other):
    assert on_windows.folded(on_windows.components(one)) == on_windows.folded(on_windows.components(other))


@pytest.mark.parametrize("path", sorted(path for paths in WRONG.values() for path in paths if "\0" not in path))
def test_windows_never_looks_up_what_is_no_plain_path(on_windows, path):
    with pytest.raises(PathError) as caught:
        on_windows.path_of(path)
    assert caught.value.code == "bad_path"


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///C:/a%20b", "C:/a b"),
        ("file:///c%7C/x", "c:/x"),
        ("file://server/share/x", "//server/share/x"),
        ("FILE:///C:/x", "C:/x"),
        ("file://localhost/C:/x", "C:/x"),
    ],
)
def test_windows_reads_the_uri_of_a_path(on_windows, uri, path):
    assert on_windows.path_of(uri) == path


@pytest.mark.parametrize("uri", ["file:///C:/a%5Cb", "file:///C:/nul", "file:///C:/x:y", "file:////%3F/C:/x"])
def test_windows_takes_no_uri_for_what_a_path_may_not_be(on_windows, uri):
    with pytest.raises(PathError):
        on_windows.path_of(uri)


def test_windows_writes_the_uri_of_a_path(on_windows):
    assert on_windows.uri(r"C:\a b\c") == "file:///C:/a%20b/c"


def test_macos_takes_both_forms_of_an_accent_for_one_name(monkeypatch):
    on_macos = names_on(monkeypatch, "darwin")
    assert on_macos.folded(["Users", "Jose\u0301"]) == on_macos.folded(["Users", "Jos\u00e9"])
    assert names.folded(["Jose\u0301"]) != names.folded(["Jos\u00e9"])
