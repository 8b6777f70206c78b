"""Git repositories with prompts, and a daemon that serves them."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from servers.prompts.remote.address import Address, parse_address
from servers.prompts.remote.cache import Checkout
from tests.servers.prompts.folders import write

SECONDS = 60.0


class Repository:
    """A repository with a work tree."""

    def __init__(self, root: Path, files: Mapping[str, str | bytes]) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit(files)

    def git(self, *words: str, data: bytes = b"") -> str:
        """Runs git; returns its output."""
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "core.hooksPath=/dev/null"]
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *identity, *words], cwd=self.root, check=True, capture_output=True, input=data, env=environment
        )
        return done.stdout.decode().strip()

    def commit(self, files: Mapping[str, str | bytes]) -> str:
        """Writes these files and commits everything."""
        write(self.root, files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=More")
        return self.git("rev-parse", "HEAD")

    def commit_tree(self, entries: str) -> str:
        """Sets the branch to a commit with these entries in the form of `git mktree`, which allows any name."""
        tree = self.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", data=entries.encode("latin-1"))
        commit = self.git("commit-tree", tree, "-m", "Made by hand")
        self.git("update-ref", "refs/heads/main", commit)
        return commit

    def address(self, rest: str = "") -> Address:
        """Returns its address on this machine."""
        return parse_address(f"git+file://{self.root}{rest}")


def entry(mode: str, name: str, id_: str) -> str:
    """Returns an entry of a tree in git's format."""
    return f"{mode} {name}\0" + bytes.fromhex(id_).decode("latin-1")


def update(checkout: Checkout, seconds: float = SECONDS) -> bool:
    """Fetches the current state; returns whether it changed."""
    return checkout.update(Event(), seconds)


def files(checkout: Checkout) -> dict[str, str]:
    """Returns the files of the library by path."""
    found = sorted(path for path in checkout.root.rglob("*") if not path.is_dir())
    return {path.relative_to(checkout.root).as_posix(): path.read_text() for path in found}


@contextmanager
def daemon(base: Path) -> Iterator[int]:
    """Runs a git daemon for all repositories in a directory; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    words = ["--export-all", "--listen=127.0.0.1", f"--port={port}", f"--base-path={base}", "--reuseaddr"]
    with subprocess.Popen(["git", "daemon", *words], stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.02)
            yield port
        finally:
            process.terminate()
