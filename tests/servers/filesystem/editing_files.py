"""The edit of one file in short, the code of a refusal, and others who change a file meanwhile."""

import pytest

from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.replacements import Edit
from shared.coded_errors import PathError


def edit_file(files, place, edits, etag=None, encoding=None, **more):
    """Old and new texts as pairs; the result of the one file."""
    return edit_files(files, [FileEdits(place, [Edit(*edit) for edit in edits], etag, encoding)], **more)[0]


def code(call, *arguments, **more):
    """The code with which a call is refused."""
    with pytest.raises(PathError) as caught:
        call(*arguments, **more)
    return caught.value.code


def theirs_by_rename(file):
    (file.parent / "theirs").write_text("a, theirs")
    (file.parent / "theirs").rename(file)


def theirs_added(file):
    with file.open("a") as opened:
        opened.write(", theirs")
