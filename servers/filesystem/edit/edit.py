"""Editing text files: one, or several of which all are changed or none.

All files are read under the locks of all their names, so parallel edits of our processes are all applied. Each
result is written beside its file and reaches the disk before the first file is replaced. What another program changed
by then is seen and not lost (see `exchange`): the edits are made anew, upon what is there.

Where one of several files can't be replaced, those before it get their old file back, the very same one. Only the end
of the process or of the machine between two renames can leave some changed and some not. Each file is whole even
then, and undo takes back what was made (see `history/settling`).
"""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from servers.common.files.exchange import exchange, persistently
from servers.common.files.locks import locked
from servers.common.files.rooted_files import RootedFiles
from servers.filesystem.edit.diff import unified_diff
from servers.filesystem.edit.preconditions import require_file_name, require_replaceable, require_same
from servers.filesystem.edit.replacements import Edit, apply_edits
from servers.filesystem.edit.text import Edited
from servers.filesystem.edit.write import MAX_EDITED, Contents, read_contents
from servers.filesystem.errors import FilesError
from servers.filesystem.history.recording import NOT_RECORDED, Recorder, Survey
from servers.filesystem.history.states import file_state
from servers.filesystem.read.charsets import encode, require_sure
from shared.coded_errors import os_errors
from shared.program.files.atomic import beside, discard, landed, link, prepared, rename, sync_directory
from shared.program.files.entries import Entry, Place, current, etag_of
from shared.program.files.metadata import lost_owner


class FileEdits(NamedTuple):
    """The edits of one file; with `etag`, only while it still has that; it is in `encoding`, where one is given."""

    place: Place
    edits: Sequence[Edit]
    etag: str | None = None
    encoding: str | None = None


class EditResult(NamedTuple):
    """The changes of one file as a unified diff; its size and etag, on a dry run those it has still; its charset.

    `lost` is what its owner and group could not keep, `tolerated` in what old texts differed from what they matched.
    """

    diff: str
    size: int
    etag: str
    charset: str
    lost: Sequence[str] = ()
    tolerated: Sequence[str] = ()


class _Options(NamedTuple):
    dry_run: bool
    protected: bool
    recorder: Recorder


class _Changed(NamedTuple):
    """A file, and what is to be in it."""

    entry: Entry
    written: str
    was: Contents
    edited: Edited
    data: bytes
    is_exact: bool
    """Whether it was asked for by an etag, so that what was added to it meanwhile makes it another one."""


def edit_files(
    beneath: RootedFiles,
    wanted: Sequence[FileEdits],
    dry_run: bool = False,
    protected: bool = False,
    check: Callable[[], None] = lambda: None,
    recorder: Recorder = NOT_RECORDED,
) -> list[EditResult]:
    """Apply the edits to all the files, or to none: a result for each.

    `protected` files are replaced, too (see `require_replaceable`). `check` is called before each edit, and what it
    raises changes nothing. Raises `changed` when someone else wrote one of them meanwhile, `not_text`, `too_large`,
    `bad_encoding`, `unsure_charset` (see `require_sure`), and what `apply_edits` raises.
    """
    # Where an edit is to be of one version only, another one is no reason to try again.
    codes = ("changed",) if all(one.etag is None for one in wanted) else ()
    options = _Options(dry_run, protected, recorder)
    return persistently(lambda: _edited(beneath, wanted, options, check), codes)


def _edited(
    beneath: RootedFiles, wanted: Sequence[FileEdits], options: _Options, check: Callable[[], None]
) -> list[EditResult]:
    with ExitStack() as stack:
        entries = []
        for one in wanted:
            require_file_name(one.place)
            beneath.roots.require_writable(one.place)
            entries.append(stack.enter_context(beneath.locate(one.place)))
            beneath.roots.require_writable(entries[-1].place)
        stack.enter_context(locked(*entries))
        places = [(entry.place.root_index, entry.place.parts) for entry in entries]
        for number, one in enumerate(wanted):
            if places[number] in places[:number]:
                reason, suggestion = "is named twice", "Give all edits of a file together."
                raise FilesError("bad_edit", one.place.written, reason, suggestion)
        changed = []
        left = MAX_EDITED
        for entry, one in zip(entries, wanted, strict=True):
            with os_errors(one.place.written):
                written = one.place.written
                was = read_contents(beneath, entry, written, left, one.encoding)
                require_same(was.found, one.etag, written)
                edited = apply_edits(was.text, one.edits, written, check)
                fresh = "".join(edited.after[start:end] for *_, start, end in edited.spans)
                require_sure(was.charset, fresh, was.data, was.text, written)
                data = encode(edited.after, was.charset, written)
                changed.append(_Changed(entry, written, was, edited, data, one.etag is not None))
            left -= len(changed[-1].was.data)
        if options.dry_run:
            return [_result(one, one.was.found) for one in changed]
        replaced = [file for file in changed if file.data != file.was.data]
        for file in replaced:
            with os_errors(file.written):
                # The journal may have the old file under a second name by the time it is replaced.
                require_replaceable(file.entry, current(file.entry), file.written, options.protected)

        def describe(survey: Survey) -> None:
            for file in replaced:
                survey.changes(file.entry, file_state(file.data), file.was.data)

        with options.recorder.recording(beneath, "edit", describe):
            return _put(changed)


def _result(one: _Changed, now: os.stat_result) -> EditResult:
    diff = unified_diff(one.edited, "/".join(one.entry.place.parts))
    lost = lost_owner(one.was.found, now)
    return EditResult(diff, now.st_size, etag_of(now), one.was.charset.name, lost, one.edited.tolerated)


def _put(changed: Sequence[_Changed]) -> list[EditResult]:
    """Replace the files whose contents are other now."""
    stats = [one.was.found for one in changed]
    numbers = [number for number, one in enumerate(changed) if one.data != one.was.data]
    with ExitStack() as leftovers, ExitStack() as on_failure:
        fresh: dict[int, Entry] = {}
        for number in numbers:
            one = changed[number]
            with os_errors(one.written):
                fresh[number] = prepared(one.entry, one.data, one.was.found)
            leftovers.callback(discard, fresh[number])
        for number in numbers:
            # The last one needs no way back.
            undo = on_failure if number != numbers[-1] else None
            _replace(changed[number], fresh[number], undo, leftovers)
        on_failure.pop_all()
        for number in numbers:
            sync_directory(changed[number].entry)
            stats[number] = landed(fresh[number], changed[number].entry)
    return [_result(one, now) for one, now in zip(changed, stats, strict=True)]


def _replace(one: _Changed, fresh: Entry, undo: ExitStack | None, leftovers: ExitStack) -> None:
    with os_errors(one.written):
        if undo is not None:
            # From the file as it is, under a second name, it can be put back whatever happens.
            kept = beside(one.entry)
            try:
                link(one.entry, kept)
            except (OSError, NotImplementedError):
                kept = prepared(one.entry, one.was.data, one.was.found)
            leftovers.callback(discard, kept)
            undo.callback(_put_back, kept, fresh, one.entry)
        exchange(fresh, one.entry, one.was.found, None if one.is_exact else one.was.data)


def _put_back(kept: Entry, fresh: Entry, entry: Entry) -> None:
    now = current(entry)
    # What someone else has put there since is theirs.
    if now is not None and fresh.stat is not None and os.path.samestat(now, fresh.stat):
        with suppress(OSError):
            rename(kept, entry)
