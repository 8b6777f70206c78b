"""The process that reads pages: one after another, from standard input to standard output.

It loads a reader with the first page of its kind, holds nothing but the page it reads, and ends when the server does.
Whatever a page does to it, an error, no memory left or a crash, costs that page and no other.
"""

import gc
import importlib
import json
import logging
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from servers.common.documents.document import DocumentError
from servers.common.documents.kinds import DOCUMENTS
from servers.common.html.invisible import strip_invisible
from servers.fetch.errors import FetchError
from servers.fetch.read.page import Found, Kind, KindName, Page, Removed, Source
from servers.fetch.read.pipe_frames import LENGTHS, Head, head_of, lengths_of, pack

MEBIBYTE = 1024 * 1024
_STATM = Path("/proc/self/statm")
# Memory does not all come back once it was taken. A worker that holds so much more than at its start makes room for
# a fresh one.
MAX_GROWTH = 48 * MEBIBYTE


def reader_of(kind: KindName) -> Callable[[Source], Page]:
    """What reads pages of a kind, loaded."""
    if kind == "html":
        from servers.fetch.read.html.page import read_html_page

        return read_html_page
    if kind == "json":
        from servers.fetch.read.json_page import read_json

        return read_json
    if kind == "feed":
        from servers.fetch.read.feed_page import read_feed

        return read_feed
    if kind == "markdown":
        from servers.fetch.read.markdown_page import read_markdown

        return read_markdown
    if kind == "pdf":
        from servers.fetch.read.pdf_page import read_pdf_page

        return read_pdf_page
    if kind in DOCUMENTS:
        from servers.fetch.read.document_page import page_reader

        return page_reader(kind)
    from servers.fetch.read.text import read_text

    return read_text


class _Worker:
    def __init__(self, seconds: float, mebibytes: int, pages: int) -> None:
        self._seconds = seconds
        self._mebibytes = mebibytes
        self._pages = pages
        self._small = 0

    def answer(self, head: Head, body: bytes) -> tuple[Head, list[bytes]]:
        """The head of the answer, which names what is wrong where there is an error, and the parts of its body."""
        try:
            read = reader_of(head["kind"])
            if "format" not in head:
                # What was loaded for a kind of pages counts as memory of the worker, not of its pages.
                gc.collect()
                gc.freeze()
                _limit_memory(self._mebibytes)
                self._small = _resident()
                return {}, []
            # This ends the process, should the server be gone that would end it otherwise.
            _set("RLIMIT_CPU", int(time.process_time() + self._seconds) + 2)
            kind, charset = Kind(head["kind"], head["media_type"]), head["charset"]
            parts = head["section"], head["pages"]
            source = Source(kind, charset, head["url"], head["format"], *parts, self._seconds, body)
            page = read(source)
            if page.kind != "html":  # whose reader has done it
                shown, characters = strip_invisible(page.text)
                page = page._replace(text=shown, removed=Removed(characters=characters))
            page = page._replace(found=Found(*(strip_invisible(fact)[0] for fact in page.found)))
            encoded = page.text.encode("utf-8", "replace")
            return self._ended(head_of(page)), [encoded]
        except DocumentError as error:
            return self._ended({"error": [error.code, error.reason, error.suggestion, ""]}), []
        except FetchError as error:
            quoted, _ = strip_invisible(error.quoted)
            return self._ended({"error": [error.code, error.reason, error.suggestion, quoted]}), []
        except MemoryError:
            reason = f"reading the page takes more than {self._mebibytes} MiB of memory"
            return {"error": ["unreadable", reason, "", ""], "last": True}, []
        except RecursionError:
            return self._ended({"error": ["unreadable", "the page is nested too deeply", "", ""]}), []
        except Exception as error:
            reason = f"the page is damaged, or of a form that is not known ({type(error).__name__})"
            return self._ended({"error": ["unreadable", reason, "", ""]}), []

    def _ended(self, head: Head) -> Head:
        self._pages -= 1
        grown = _resident() - self._small
        return head | {"last": self._pages <= 0 or grown > MAX_GROWTH}


def main(seconds: float, mebibytes: int, pages: int) -> None:
    """Reads so many `pages`, until there are no more. Each may take `seconds`, and `mebibytes` of memory."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What a library prints, or asks, must not come between the frames.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    logging.disable()
    warnings.simplefilter("ignore")
    # A crash leaves no copy of a page on the disk.
    _set("RLIMIT_CORE", 0)
    _limit_memory(mebibytes)
    answer = _Worker(seconds, mebibytes, pages).answer
    while start := requests.read(LENGTHS.size):
        head_length, body_length = lengths_of(start)
        head = json.loads(requests.read(head_length))
        reply, parts = answer(head, requests.read(body_length))
        answers.write(pack(reply, sum(map(len, parts))))
        answers.writelines(parts)
        answers.flush()


# What the process may take of the machine, where the platform can limit it


_RESOURCE: ModuleType | None
try:
    _RESOURCE = importlib.import_module("resource")
except ModuleNotFoundError:  # Windows has none: there the time is limited, and the memory is not
    _RESOURCE = None


def _limit_memory(mebibytes: int) -> None:
    """Lets this process take `mebibytes` more than it has now."""
    _set("RLIMIT_AS", _held(0) + mebibytes * MEBIBYTE)


def _resident() -> int:
    """How many bytes of memory this process holds; 0 where that is not known."""
    return _held(1)


def _set(name: str, value: int) -> None:
    if _RESOURCE is None or not hasattr(_RESOURCE, name):
        return
    _, hard = _RESOURCE.getrlimit(getattr(_RESOURCE, name))
    soft = value if hard == _RESOURCE.RLIM_INFINITY else min(value, hard)
    try:
        _RESOURCE.setrlimit(getattr(_RESOURCE, name), (soft, hard))
    except (OSError, ValueError):  # a system that knows the limit and does not have it
        return


def _held(column: int) -> int:
    try:
        return int(_STATM.read_text("ascii").split()[column]) * (_RESOURCE.getpagesize() if _RESOURCE else 0)
    except OSError:  # not Linux
        return 0
