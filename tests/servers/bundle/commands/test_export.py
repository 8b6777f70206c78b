"""Files that `export` writes."""

from pathlib import Path

import pytest

from servers.bundle.commands.export import write_files


def test_a_link_is_replaced_and_nothing_written_through_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "file").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="--force replaces it"):
        write_files(out, {"file": b"new"})
    write_files(out, {"file": b"new"}, force=True)
    assert (out / "file").read_bytes() == b"new"
    assert not (out / "file").is_symlink()
    assert not (tmp_path / "elsewhere").exists()
    assert (out / "file").stat().st_mode & 0o111 == 0
