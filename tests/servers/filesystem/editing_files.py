"""Helpers: edit one file, get the code of an error, change a file as another program does."""

import pytest

from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.replacements import Edit
from shared.coded_errors import PathError


def edit_file(files, place, edits, etag=None, encoding=None, **more):
    """Edit one file with pairs of old and new text, and return its result."""
    return edit_files(files, [FileEdits(place, [Edit(*edit) for edit in edits], etag, encoding)], **more)[0]


def code(call, *arguments, **more):
    """The code of the error that a call raises."""
    with pytest.raises(PathError) as caught:
        call(*arguments, **more)
    return caught.value.code


def replace_as_another(file):
    (file.parent / "theirs").write_text("a, theirs")
    (file.parent / "theirs").rename(file)


def append_as_another(file):
    with file.open("a") as opened:
        opened.write(", theirs")
