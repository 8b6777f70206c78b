"""Edits to one or more text files: all of them are changed, or none.

The names of all files are locked while they are read, so parallel edits by several server processes are all applied.
Each result is written beside its file and reaches the disk before the first file is replaced. A change that another
program makes in the meantime is detected and not lost (see `exchange`): the edits are applied again, to the new
contents.

If one of several files can't be replaced, the files already replaced are restored, with their inodes. Only a crash of
the process or the machine between two renames can leave some files changed and others not. Even then each file is
complete, and undo reverts the changes that were made (see `history/settling`).
"""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from servers.common.files.exchange import exchange, retry
from servers.common.files.locks import lock_entries
from servers.common.files.rooted_files import RootedFiles
from shared.coded_errors import os_errors
from shared.program.files.atomic import (
    discard,
    final_stat,
    link,
    overwrite,
    prepare_replacement,
    rename,
    sync_directory,
    temporary_entry,
)
from shared.program.files.entries import Entry, Place, etag_of, stat_entry
from shared.program.files.metadata import lost_owner

from ..errors import FilesError
from ..history.recording import NOT_RECORDED, FileVersion, Recorder, Survey
from ..history.states import file_state
from ..read.charsets import encode, require_exact, require_sure
from .diff import unified_diff
from .preconditions import require_file_name, require_replaceable, require_same
from .replacements import Edit, apply_edits
from .text import EditedText
from .write import MAX_EDITED, Contents, read_contents


class FileEdits(NamedTuple):
    """The edits to one file. With `etag`, they apply only if the file's etag still matches. `encoding` is the charset
    of the file; None to detect it."""

    place: Place
    edits: Sequence[Edit]
    etag: str | None = None
    encoding: str | None = None


class EditResult(NamedTuple):
    """The changes to one file as a unified diff, and its charset, size and etag (on a dry run, the unchanged ones).

    `lost` contains the owner and group if they could not be kept, and `tolerated` the differences between old texts
    and the places that they match.
    """

    diff: str
    size: int
    etag: str
    charset: str
    lost: Sequence[str] = ()
    tolerated: Sequence[str] = ()


class _EditOptions(NamedTuple):
    dry_run: bool
    protected: bool
    recorder: Recorder


class _ChangedFile(NamedTuple):
    """A file and its new contents."""

    entry: Entry
    path: str
    contents: Contents
    """The contents before the edits."""
    edited: EditedText
    data: bytes
    is_exact: bool
    """True if an etag was given: then data that another program appends counts as a change, too."""


def edit_files(
    rooted: RootedFiles,
    requests: Sequence[FileEdits],
    dry_run: bool = False,
    protected: bool = False,
    check: Callable[[], None] = lambda: None,
    recorder: Recorder = NOT_RECORDED,
) -> list[EditResult]:
    """Apply the edits to all the files, or to none. Return a result for each file.

    With `protected`, write-protected files and files with several hard links are replaced too. `check` is called
    before each edit; if it raises, nothing is changed. Raises FilesError with code `changed` if another program wrote
    one of the files in the meantime, with `not_text`, `too_large`, `bad_encoding`, or `unsure_charset` (see
    `require_sure`), and the errors of `apply_edits`.
    """
    # With an etag, the edits are meant for one version of the file, so they are not retried on another.
    codes = ("changed",) if all(request.etag is None for request in requests) else ()
    options = _EditOptions(dry_run, protected, recorder)
    return retry(lambda: _edit_once(rooted, requests, options, check), codes)


def _edit_once(
    rooted: RootedFiles, requests: Sequence[FileEdits], options: _EditOptions, check: Callable[[], None]
) -> list[EditResult]:
    with ExitStack() as stack:
        entries = []
        for request in requests:
            require_file_name(request.place)
            rooted.roots.require_writable(request.place)
            entries.append(stack.enter_context(rooted.locate(request.place)))
            rooted.roots.require_writable(entries[-1].place)
        handles = stack.enter_context(lock_entries(*entries))
        places = [(entry.place.root_index, entry.place.parts) for entry in entries]
        for number, request in enumerate(requests):
            if places[number] in places[:number]:
                reason, suggestion = "is named twice", "Pass all edits to a file together."
                raise FilesError("bad_edit", request.place.path, reason, suggestion)
        changed = []
        remaining = MAX_EDITED
        for entry, handle, request in zip(entries, handles, requests, strict=True):
            with os_errors(request.place.path):
                path = request.place.path
                contents = read_contents(rooted, entry, handle, request.encoding, remaining)
                require_same(contents.stat, request.etag, path)
                require_exact(contents.text, contents.charset, contents.data, path)
                edited = apply_edits(contents.text, request.edits, path, check)
                inserted = "".join(edited.after[start:end] for *_, start, end in edited.spans)
                require_sure(contents.charset, inserted, contents.data, contents.text, path)
                data = encode(edited.after, contents.charset, path)
                changed.append(_ChangedFile(entry, path, contents, edited, data, request.etag is not None))
            remaining -= len(changed[-1].contents.data)
        replaced = [file for file in changed if file.data != file.contents.data]
        for file in replaced:
            with os_errors(file.path):
                # Check before the change is recorded: the journal may give the file another hard link.
                require_replaceable(file.entry, stat_entry(file.entry), file.path, options.protected)
        if options.dry_run:
            return [_result(file, file.contents.stat) for file in changed]

        def describe(survey: Survey) -> None:
            for file in replaced:
                before = FileVersion(file.contents.stat, file.contents.data, file.contents.attributes)
                survey.record_change(file.entry, file_state(file.data), before)

        with options.recorder.record(rooted, "edit", describe):
            return _replace_all(changed)


def _result(file: _ChangedFile, now: os.stat_result) -> EditResult:
    diff = unified_diff(file.edited, "/".join(file.entry.place.parts))
    lost = lost_owner(file.contents.stat, now)
    return EditResult(diff, now.st_size, etag_of(now), file.contents.charset.name, lost, file.edited.tolerated)


def _replace_all(changed: Sequence[_ChangedFile]) -> list[EditResult]:
    """Replace the files whose contents have changed."""
    stats = [file.contents.stat for file in changed]
    numbers = [number for number, file in enumerate(changed) if file.data != file.contents.data]
    with ExitStack() as leftovers, ExitStack() as on_failure:
        replacements: dict[int, Entry] = {}
        for number in numbers:
            file = changed[number]
            with os_errors(file.path):
                replacements[number] = prepare_replacement(
                    file.entry, file.data, file.contents.stat, attributes=file.contents.attributes
                )
            leftovers.callback(discard, replacements[number])
        for number in numbers:
            # The last file needs no backup: if replacing it fails, it is unchanged.
            restoring = on_failure if number != numbers[-1] else None
            _replace(changed[number], replacements[number], restoring, leftovers)
        on_failure.pop_all()
        for number in numbers:
            sync_directory(changed[number].entry)
            stats[number] = final_stat(replacements[number], changed[number].entry, changed[number].contents.stat)
    return [_result(file, now) for file, now in zip(changed, stats, strict=True)]


def _replace(file: _ChangedFile, replacement: Entry, on_failure: ExitStack | None, leftovers: ExitStack) -> None:
    """Replace the file. With `on_failure`, first make a backup from which that stack will restore the file."""
    with os_errors(file.path):
        backup = None
        if on_failure is not None:
            # A second name for the original file makes it possible to restore it.
            backup = temporary_entry(file.entry)
            try:
                link(file.entry, backup)
            except (OSError, NotImplementedError):
                backup = prepare_replacement(file.entry, file.contents.data, file.contents.stat)
            leftovers.callback(discard, backup)
            on_failure.callback(_put_back, backup, replacement, file.entry)
        is_new = exchange(replacement, file.entry, file.contents.stat, None if file.is_exact else file.contents.data)
        if not is_new and on_failure is not None and backup is not None:
            on_failure.callback(_write_back, backup, file.entry, stat_entry(file.entry))


def _write_back(backup: Entry, entry: Entry, expected: os.stat_result | None) -> None:
    """Overwrite the file with its old contents, unless another program has changed it since the status `expected`."""
    now = stat_entry(entry)
    if now is not None and expected is not None and etag_of(now) == etag_of(expected):
        with suppress(OSError):
            overwrite(backup, entry)


def _put_back(backup: Entry, replacement: Entry, entry: Entry) -> None:
    """Give the original file its name again, if the replacement still has that name."""
    now = stat_entry(entry)
    # If another program has replaced it since, that file stays.
    if now is not None and replacement.stat is not None and os.path.samestat(now, replacement.stat):
        with suppress(OSError):
            rename(backup, entry)
