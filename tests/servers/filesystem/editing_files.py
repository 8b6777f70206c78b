"""The edit of one file in short, for tests."""

from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.replacements import Edit


def edit_file(files, place, edits, etag=None, **more):
    """Old and new texts as pairs; the result of the one file."""
    return edit_files(files, [FileEdits(place, [Edit(*edit) for edit in edits], etag)], **more)[0]
