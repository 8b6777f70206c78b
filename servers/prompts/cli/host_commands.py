"""Implements `export --as HOST`, which writes prompts as commands of a host."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from shared.text import escape, format_count

from ..errors import PromptError
from ..format.front_matter import MAX_FILE_BYTES
from ..templates.host_commands import Command, Host, make_command
from ..write.files import allow_any_contents, put
from .commands import choose_names, open_library, open_target, print_line, report_failure


def export_commands(root: Path, names: Sequence[str] | None, target: Path, host: Host, force: bool) -> int:
    """Write the prompts with these names (all if it is None) as files in `target`, and print what each of them loses.

    Return 1 and write none if a prompt can't be a command of the host, or if a different file would be replaced and
    `force` is False. Raises UsageError.
    """
    library = open_library(root)
    commands: dict[str, Command] = {}
    failures = 0
    for name in choose_names(library, names):
        try:
            command = make_command(library.rendering(name), library.source(name), host)
            lost = list(command.losses)
            # A command is a single file, while a skill may have others in addition to SKILL.md.
            siblings = sorted(library.sibling_files(name) or ())
            if siblings:
                more = f" and {format_count(len(siblings) - 1, 'more file')}" if len(siblings) > 1 else ""
                lost.append(f"{escape(siblings[0])}{more} of the skill")
            commands[name + host.ending] = command._replace(losses=tuple(lost))
        except PromptError as error:
            failures += 1
            report_failure(root, library.path(name), error)
    if failures:
        total = format_count(failures + len(commands), "prompt")
        others = ": name the others to write those" if commands else ""
        print_line(f"nothing was written: {failures:,} of {total} can't be written as {host.title} commands{others}")
        return 1
    folder = open_target(target)
    existing: dict[str, bytes] = {}
    for path in commands:
        with suppress(PromptError):
            existing[path] = folder.read(path, MAX_FILE_BYTES)
    differing = [path for path, old_data in existing.items() if old_data != commands[path].data]
    if differing and not force:
        for path in differing:
            print_line(f"{target / path}: a different file already exists (--force replaces it)")
        return 1
    written = [path for path in commands if path not in existing or path in differing]
    for path in written:
        try:
            put(folder, path, commands[path].data, allow_any_contents)
        except PromptError as error:
            report_failure(target, path, error)
            return 1
        losses = commands[path].losses
        print_line(f"{target / path}" + (f": without {', '.join(losses)}" if losses else ""))
    print_line(f"{format_count(len(written), 'command')} written, {len(commands) - len(written)} unchanged")
    return 0
