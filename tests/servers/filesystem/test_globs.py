import pytest

from servers.filesystem.errors import FilesError
from servers.filesystem.watching.globs import split_glob


@pytest.mark.parametrize(
    ("uri", "split"),
    [
        ("file:///root/src/**/*.py", ("file:///root/src/", "./**/*.py")),
        ("file:///root/*.py", ("file:///root/", "./*.py")),
        ("file:///root/a%5B1%5D/**/*.%7Ba,b%7D", ("file:///root/a%5B1%5D/", "./**/*.{a,b}")),
        ("file:///root/**/%3F.txt", ("file:///root/", "./**/?.txt")),
        ("file:///root/a%2Ab", None),
        ("file:///root/a.txt", None),
    ],
)
def test_w10_a_star_makes_a_uri_a_glob(uri, split):
    assert split_glob(uri) == split


def test_a_glob_no_file_name_can_match_is_refused():
    with pytest.raises(FilesError, match="no file name"):
        split_glob("file:///root/*\ud800")
