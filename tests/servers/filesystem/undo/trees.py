"""Snapshots of a directory, and random changes of its contents."""

import os
import stat
from pathlib import Path

from hypothesis import strategies as st

from servers.filesystem.edit.delete import delete
from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.move import copy, move
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.edit.write import create_directory, write_file
from servers.filesystem.errors import FilesError

NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/e", "d/e/f", "link"])
TEXTS = st.sampled_from(["", "one\n", "two\n", "one\ntwo\n", "large"])
LARGE = "one\n" * 20_000
"""What `large` stands for: more than the journal keeps by itself."""
ACTS = st.one_of(
    st.tuples(st.just("write"), NAMES, TEXTS),
    st.tuples(st.just("append"), NAMES, TEXTS),
    st.tuples(st.just("edit"), NAMES, NAMES),
    st.tuples(st.just("create_directory"), NAMES),
    st.tuples(st.just("move"), NAMES, NAMES),
    st.tuples(st.just("copy"), NAMES, NAMES),
    st.tuples(st.just("delete"), NAMES),
)


def tree_of(folder: Path) -> dict[str, tuple]:
    """Kinds, modes and contents of all entries below the folder, by path."""
    entries = {}
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        contents = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        attributes = (
            () if path.is_symlink() else tuple((name, os.getxattr(path, name)) for name in os.listxattr(path))
        )
        entries[str(path.relative_to(folder))] = (stat.filemode(info.st_mode), contents, attributes)
    return entries


def fill(folder: Path) -> None:
    """Create files, directories and a link, some with unusual modes."""
    (folder / "d" / "e").mkdir(parents=True)
    (folder / "a").write_text("one\n")
    (folder / "d" / "a").write_text("two\n")
    (folder / "d" / "e" / "f").write_text("one\ntwo\n")
    (folder / "a").chmod(0o640)
    (folder / "d" / "e").chmod(0o750)
    (folder / "link").symlink_to("d/a")


def make(files, act, recorder) -> bool:
    """Make one change, and return whether it was accepted."""
    kind, *arguments = act
    places = [files.roots.place(name) for name in arguments if kind not in ("write", "append")]
    try:
        if kind in ("write", "append"):
            mode = "overwrite" if kind == "write" else kind
            text = LARGE if arguments[1] == "large" else arguments[1]
            write_file(files, files.roots.place(arguments[0]), text, mode, recorder=recorder)
        elif kind == "edit":
            file_edits = [FileEdits(place, [Edit("one\n", "three\n", 0)]) for place in dict.fromkeys(places)]
            edit_files(files, file_edits, recorder=recorder)
        elif kind == "create_directory":
            create_directory(files, *places, recorder)
        elif kind == "delete":
            delete(files, *places, True, recorder=recorder)
        else:
            (move if kind == "move" else copy)(files, *places, recorder=recorder)
    except FilesError:
        return False
    return True
