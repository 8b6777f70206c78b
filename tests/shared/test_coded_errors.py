"""Errors of the system as those of a path, in words of ours."""

import errno

import pytest

from shared.coded_errors import PathError, from_os_error, os_errors

CODES = {
    errno.ENOENT: "not_found",
    errno.ENOTDIR: "not_a_directory",
    errno.EISDIR: "not_a_file",
    errno.EEXIST: "already_exists",
    errno.EACCES: "permission_denied",
    errno.EROFS: "read_only",
    errno.ENXIO: "special_file",
    errno.EIO: "io_error",
}


def test_os_errors_have_stable_codes():
    assert {number: from_os_error("x", OSError(number, "text")).code for number in CODES} == CODES


def test_the_resolved_path_of_an_os_error_stays_inside():
    with pytest.raises(PathError) as caught, os_errors("mine"):
        raise OSError(errno.EIO, "oops", "/secret/place")
    assert "secret" not in str(caught.value)
    assert caught.value.path == "mine"
    assert caught.value.__cause__ is None


def test_an_error_is_one_line():
    assert str(PathError("not_found", "a\nb", "does not exist", "Look.")) == "a\\nb: does not exist. Look."


def test_an_error_without_path_or_suggestion():
    assert str(PathError("bad_pattern", "", "is bad")) == "is bad"


def test_other_exceptions_pass():
    with pytest.raises(KeyError), os_errors("x"):
        raise KeyError
