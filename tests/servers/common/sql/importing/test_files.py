"""Files of the operator's directory that clients name."""

import os
from pathlib import Path

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.importing.files import find_version


def test_no_file_name_leads_out_of_the_operators_directory(tmp_path: Path) -> None:
    files, outside = tmp_path / "files", tmp_path / "secret.csv"
    (files / "dir").mkdir(parents=True)
    outside.write_text("a\n1\n")
    (files / "link.csv").symlink_to(outside)
    os.mkfifo(files / "pipe.csv")
    names = ["../secret.csv", str(outside), "link.csv", "pipe.csv", "dir", "..", ".", "", "a\0b", "none.csv"]
    errors = []
    for name in names:
        with pytest.raises(SqlError) as raised:
            find_version(files, name)
        errors.append(raised.value)
    assert [error.code for error in errors] == ["bad_file"] * 9 + ["not_found"]
    assert not [error for error in errors if str(tmp_path) in str(error)]
