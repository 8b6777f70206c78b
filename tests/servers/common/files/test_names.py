"""Names on other systems, as functions of text; nothing here was run on those systems."""

import importlib.util
import ntpath
import os
import sys
import types
from pathlib import PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.common.files import names
from servers.common.files.names import windows_path, windows_refusal, windows_uri
from shared.coded_errors import PathError

DEVICE = "the path names a device"
CURRENT = "the path is relative to the current directory of a drive"
NO_DRIVE = "the path names no drive"
STREAM = "the path names an alternate data stream"
TRIMMED = "a name in the path ends in a dot or a space, which Windows drops"
CHARACTER = "a name in the path contains a character that no file name can have"
DEVICE_NAME = "a name in the path is a device name"
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


PLAIN = [
    *("a", r"a\b.txt", "a/b", ".", "..", r"..\x", r"C:\\", "C:/x/y.txt", r"c:\a b\.env", r"C:\x\..\y"),
    *("COM", "COM10", "console", "nul1", "x.nul", "a.b.c"),
    *(r"\\server\share", r"\\server\share\x", "//server/share/x"),
]


def test_names_that_windows_reinterprets_are_refused():
    assert {reason: {windows_refusal(path) for path in paths} for reason, paths in WRONG.items()} == {
        reason: {reason} for reason in WRONG
    }
    assert [path for path in PLAIN if windows_refusal(path) is not None] == []


def is_reserved(path):
    """Whether Python treats the name as reserved; the function moved between versions."""
    ask = getattr(ntpath, "isreserved", None)
    return PureWindowsPath(path).is_reserved() if ask is None else ask(path)


def test_device_names_agree_with_python():
    names = ["NUL", "aux.h", "COM1", "LPT\u00b2", "CONOUT$", "CON .x", "a", "COM0", "auxiliary"]
    assert [name for name in names if (windows_refusal(name) is not None) != is_reserved(name)] == []


NAMES = st.text(st.characters(codec="ascii"), max_size=5) | st.sampled_from(
    ["..", ".", "C:", "NUL", " ", "x:y", "\\"]
)


@given(st.lists(NAMES).map("\\".join))
def test_accepted_windows_paths_are_absolute_or_have_no_drive(path):
    if windows_refusal(path) is None:
        pure = PureWindowsPath(path)
        assert pure.is_absolute() or not (pure.drive or pure.root)
        assert not is_reserved(path)


def test_a_uri_is_converted_to_a_windows_path():
    paths = {
        ("", "/C:/a b"): r"C:\a b",
        ("", "/c|/x"): r"c:\x",
        ("", "/C:"): "C:",
        ("", "/x/C:/y"): r"\x\C:\y",
        ("", "/Cx/y"): r"\Cx\y",
        ("server", "/share/x"): r"\\server\share\x",
        ("", "//server/share/x"): r"\\server\share\x",
    }
    assert {uri: PureWindowsPath(windows_path(*uri)) for uri in paths} == {
        uri: PureWindowsPath(path) for uri, path in paths.items()
    }


def test_a_windows_path_is_converted_to_a_uri():
    assert windows_uri("C:\\a b\\c#d") == "file:///C:/a%20b/c%23d"
    assert windows_uri(r"\\server\share\x") == "file://server/share/x"


def names_on(monkeypatch, system):
    """The module `names` imported as on another system."""
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


SPLIT = {
    r"C:\a\.\b/c": ["C:", "a", "b", "c"],
    "C:/": ["C:"],
    r"\\server\share\a": [r"\\server\share", "a"],
    "//server/share/a": ["//server/share", "a"],
    r"a\..\b": ["a", "..", "b"],
    r"C:\PROGRA~1\x": ["C:", "PROGRA~1", "x"],
}


def test_windows_paths_are_split_as_by_ntpath(on_windows):
    assert {path: on_windows.components(path) for path in SPLIT} == SPLIT
    for path, parts in SPLIT.items():
        drive, rest = ntpath.splitdrive(path)
        others = [name for name in ntpath.normpath(rest).split("\\") if name]
        assert on_windows.collapse(parts) == [drive] * bool(drive) + others


def test_case_and_slashes_do_not_matter_on_windows(on_windows):
    for one, other in (
        (r"C:\Users\Ann", "c:/users/ANN"),
        (r"\\Server\Share\x", "//server/share/X"),
        ("D:\\\u00c4", "d:\\\u00e4"),
    ):
        assert on_windows.fold(on_windows.components(one)) == on_windows.fold(on_windows.components(other))


def test_unusual_paths_are_refused_on_windows(on_windows):
    uris = ["file:///C:/a%5Cb", "file:///C:/nul", "file:///C:/x:y", "file:////%3F/C:/x"]
    for path in [*uris, *(path for paths in WRONG.values() for path in paths)]:
        with pytest.raises(PathError) as caught:
            on_windows.path_of(path)
        assert caught.value.code == "bad_path", path


def test_uris_are_read_on_windows(on_windows):
    paths = {
        "file:///C:/a%20b": "C:/a b",
        "file:///c%7C/x": "c:/x",
        "file://server/share/x": "//server/share/x",
        "FILE:///C:/x": "C:/x",
        "file://localhost/C:/x": "C:/x",
    }
    assert {uri: on_windows.path_of(uri) for uri in paths} == paths


def test_uris_are_written_on_windows(on_windows):
    assert on_windows.uri(r"C:\a b\c") == "file:///C:/a%20b/c"


def test_unicode_forms_of_an_accent_are_equal_on_macos(monkeypatch):
    on_macos = names_on(monkeypatch, "darwin")
    assert on_macos.fold(["Users", "Jose\u0301"]) == on_macos.fold(["Users", "Jos\u00e9"])
    assert names.fold(["Jose\u0301"]) != names.fold(["Jos\u00e9"])
