"""Kills changes of a client's file at every stage, and goes on from there: for a process of its own.

A stage ends where the file system is asked to open, rename, remove or make something. Says what was wrong, and
whether there were stages.
"""

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from servers.hosts.clients import Machine, client_named
from servers.hosts.configured import Configured, read_bytes
from servers.hosts.installing import Target, install, uninstall

HOME = Path(sys.argv[1])
FILE = HOME / ".cursor" / "mcp.json"
ASKED = {"open", "os.rename", "os.remove", "os.mkdir", "os.chmod", "os.rmdir", "os.scandir"}


def change(word: str | None) -> None:
    """Puts a server there that is given a word, or takes it out."""
    target = Target.of(client_named("cursor"), Machine("linux", HOME, {}), "user", HOME)
    with target.held():
        new = Configured("a", "/opt/mcp", (word,)) if word else None
        (install(target, new, replace=False) if new else uninstall(target, "a", [])).make()


def is_killed(word: str | None, stage: int) -> bool:
    """Makes a change in a process that is killed at a stage; whether there was such a stage."""
    child = os.fork()
    if child == 0:
        left = stage

        def count(event: str, _: tuple[Any, ...]) -> None:
            nonlocal left
            left -= event in ASKED
            if left == 0 and event in ASKED:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        try:
            change(word)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def reset(text: bytes | None, word: str | None) -> None:
    shutil.rmtree(HOME)
    HOME.mkdir()
    if text is not None:
        FILE.parent.mkdir()
        FILE.write_bytes(text)
    if word:
        change(word)


def walk(text: bytes | None, first: str | None, second: str | None) -> None:
    """Kills the change from the first word to the second in a file with `text` at every stage."""
    reset(text, first)
    old = read_bytes(FILE)
    change(second)
    whole = (old, read_bytes(FILE))
    stage = 1
    reset(text, first)
    while is_killed(second, stage):
        if read_bytes(FILE) not in whole:
            say(f"stage {stage}: the file is not whole")
        change("third")
        change(None)
        left = [path for path in HOME.rglob("*") if path.name == "lock" or path.suffix == ".tmp"]
        if read_bytes(FILE) != text or left or FILE.parent.exists() != (text is not None):
            say(f"stage {stage}: {read_bytes(FILE)!r} and {left} are left")
        stage += 1
        reset(text, first)
    say(f"from {first} to {second}: more than ten stages" if stage > 10 else f"{stage} stages")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


walk(None, None, "second")
walk(b'{\n  // mine\n  "mcpServers": {}\n}\n', "first", "second")
walk(b'{\n  // mine\n  "mcpServers": {}\n}\n', "first", None)
