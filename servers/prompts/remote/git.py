"""Runs git to find the commit of a reference, and to read the files of that commit.

Nothing is checked out. The objects of one commit are fetched into an empty bare repository, and the files are read
from it as data. So hooks, filters, attributes and submodules have no effect, and the caller can check links and names
before it writes anything. The user's own git configuration is used, since it contains the credentials.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import NamedTuple

from ..errors import PromptError
from ..library.folder import MAX_TOTAL_BYTES
from .address import Address

MAX_FETCHED_BYTES = 256_000_000
"""Maximum number of bytes that git may write for one fetch."""
_MAX_LIST_BYTES = 20_000_000
"""Maximum size of a list of files, in bytes."""
_POLL_SECONDS = 0.05
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.askPass": "",
    "credential.interactive": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_ENVIRONMENT = {
    "GCM_INTERACTIVE": "never",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    "SSH_ASKPASS": "",
}
_INHERITED_PREFIXES = ("GIT_CONFIG", "GIT_SSH", "GIT_SSL")
"""Prefixes of the GIT_ variables that git gets, since they configure connections. Others may select another
repository, or make git do more."""
_TREE_LINE = re.compile(rb"(\d{6}) (\w+) ([0-9a-f]+) +(\d+|-)\t(.*)", re.DOTALL)
_REASONS = {
    "could not read username|authentication failed|permission denied|terminal prompts disabled": "a login "
    "is required, or was refused",
    "not found|does not appear to be a git repository|does not exist|not exported": "there is no such repository",
    "could not resolve host|unable to connect|failed to connect|connection (?:refused|timed out|reset)|"
    "could not read from remote": "the repository can't be reached",
    "not our ref|couldn't find remote ref|unadvertised object": "the repository has no such commit",
    "dubious ownership": "the repository belongs to another user of this machine",
}


class Blob(NamedTuple):
    """A file of a commit."""

    path: str
    mode: str
    """The mode as in a git tree: 100644, 100755, 120000 for a link, 160000 for a submodule; or for a file that can't
    be unpacked from an archive, `encrypted` or `compressed`."""
    id: str
    """The hash of the object in git, or the name of the file in an archive."""
    size: int


class Git:
    """Runs git in the directory `scratch`, which must be empty at first. Each method blocks until git ends. Git is
    killed when `stop` is set, or `timeout` seconds after this object was created."""

    def __init__(self, scratch: Path, address: Address, stop: Event, timeout: float) -> None:
        self._scratch = scratch
        self._address = address
        self._stop = stop
        self._deadline = time.monotonic() + timeout

    def find_commit(self) -> str:
        """Return the current commit of the reference. Raises PromptError if it does not exist, or if there is no
        answer."""
        if self._address.commit is not None:
            return self._address.commit
        ref = self._address.ref
        # An annotated tag is a separate object. With ^{} after its name, git lists the commit to which it points.
        refs = [f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}", f"refs/heads/{ref}"] if ref else ["HEAD"]
        listed = self._run(["ls-remote", "--", self._address.url, *refs], _MAX_LIST_BYTES).decode(errors="replace")
        commits = {name: commit for commit, _, name in (line.partition("\t") for line in listed.splitlines())}
        commit = next((commits[name] for name in refs if name in commits), None)
        if commit is None:
            what = f"no branch or tag {ref!r}" if ref else "no commit yet"
            raise PromptError("not_fetched", f"the repository has {what}")
        return commit

    def fetch(self, commit: str) -> None:
        """Fetch a commit without its history. Raises PromptError."""
        self._run(["init", "--quiet", "--bare", "--template=", "repository"])
        self._run(
            ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head", "--", self._address.url, commit]
        )

    def files(self, commit: str) -> list[Blob]:
        """Return the files in the folder of the address, with paths relative to it. Raises PromptError."""
        tree = f"{commit}:{self._address.folder}"
        try:
            listed = self._run(["ls-tree", "-r", "-z", "-l", "--full-tree", tree], _MAX_LIST_BYTES)
        except PromptError as error:
            if error.code == "too_large" or not self._address.folder:
                raise
            reason = f"the repository has no folder {self._address.folder!r}"
            raise PromptError("not_fetched", reason) from None
        rows = filter(None, map(_TREE_LINE.fullmatch, listed.split(b"\0")))
        return [
            Blob(os.fsdecode(row[5]), row[1].decode(), row[3].decode(), int(row[4]) if row[4] != b"-" else 0)
            for row in rows
        ]

    def read(self, blobs: Sequence[Blob]) -> Iterator[bytes]:
        """Yield the contents of the files, in the order of `blobs`. Raises PromptError."""
        request = "".join(f"{blob.id}\n" for blob in blobs).encode()
        max_bytes = MAX_TOTAL_BYTES + 200 * len(blobs)
        data, position = self._run(["cat-file", "--batch"], max_bytes, request), 0
        for blob in blobs:
            start = data.find(b"\n", position) + 1
            if data[position:start] != f"{blob.id} blob {blob.size}\n".encode():
                raise PromptError("not_fetched", "the repository is damaged")
            position = start + blob.size + 1
            yield data[start : position - 1]

    def _run(self, arguments: Sequence[str], max_bytes: int = 1_000, data: bytes = b"") -> bytes:
        """Run git with these arguments and `data` as input, and return its output. Raises PromptError if git fails,
        or if the output has more than `max_bytes` bytes."""
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        if arguments[0] not in ("init", "ls-remote"):
            settings.append("--git-dir=repository")
        program = shutil.which("git")
        if program is None:
            raise PromptError("not_fetched", "git is not installed")
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("GIT_") or key.startswith(_INHERITED_PREFIXES)
        }
        ssh = (
            {}
            if "GIT_SSH" in inherited or "GIT_SSH_COMMAND" in inherited
            else {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes"}
        )
        # The user's configuration may replace HTTPS with SSH for a host. No redirect to another protocol is allowed.
        scheme = self._address.scheme
        allowed = "https:ssh" if scheme in ("https", "ssh") else scheme
        input_file, output_file, error_file = (self._scratch / name for name in ("stdin", "stdout", "stderr"))
        input_file.write_bytes(data)
        with input_file.open("rb") as stdin, output_file.open("wb") as stdout, error_file.open("wb") as stderr:
            process = subprocess.Popen(  # noqa: S603 - the arguments were checked by `parse_address`
                [program, *settings, *arguments],
                cwd=self._scratch,
                env={**inherited, **ssh, **_ENVIRONMENT, "GIT_ALLOW_PROTOCOL": allowed},
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
            with process:
                try:
                    self._wait(process)
                finally:
                    _kill(process)
        if process.returncode:
            # Don't use git's own message: it may contain paths and secrets from the user's configuration.
            text = error_file.read_text(errors="replace")
            matches = (reason for pattern, reason in _REASONS.items() if re.search(pattern, text, re.IGNORECASE))
            raise PromptError(
                "not_fetched", next(matches, "git can't fetch it; `git ls-remote` with its URL says why")
            )
        if output_file.stat().st_size > max_bytes:
            raise PromptError("too_large", "the library has too many files; name a subdirectory of the repository")
        return output_file.read_bytes()

    def _wait(self, process: "subprocess.Popen[bytes]") -> None:
        while process.poll() is None:
            if self._stop.is_set() or time.monotonic() > self._deadline:
                raise PromptError("not_fetched", "git did not answer in time")
            if _measure_size(self._scratch) > MAX_FETCHED_BYTES:
                reason = f"the repository has more than {MAX_FETCHED_BYTES // 1_000_000:,} MB"
                raise PromptError("too_large", reason, "Keep prompts in a separate repository.")
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_SECONDS)


def _measure_size(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # git may remove files in the meantime
                total += os.lstat(Path(parent, name)).st_size
    return total


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill git and the programs that it has started."""
    if process.poll() is not None:
        return
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
