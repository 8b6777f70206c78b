"""The process that reads pages: one after another, from standard input to standard output.

It holds nothing but the page it reads, and ends when the server does. Whatever a page does to it, an error, no memory
left or a crash, costs that page and no other.
"""

import gc
import json
import logging
import os
import warnings
from collections.abc import Callable
from typing import BinaryIO

from servers.fetch.errors import FetchError
from servers.fetch.reading import limits
from servers.fetch.reading.frames import LENGTHS, Head, lengths_of, packed
from servers.fetch.reading.html.invisible import without_invisible
from servers.fetch.reading.kinds import Kind
from servers.fetch.reading.page import Found, Page, Removed
from servers.fetch.reading.readers import Source, reader_of

__all__ = ["main"]

# Memory does not all come back once it was taken. A worker that holds so much more than at its start makes room for
# a fresh one.
MAX_GROWTH = 48 * limits.MEBIBYTE


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
                return self._prepared(), []
            limits.limit_processor_time(self._seconds)
            return self._of(read(self._source(head, body)))
        except FetchError as error:
            quoted, _ = without_invisible(error.quoted)
            return self._ended({"error": [error.code, error.reason, error.suggestion, quoted]}), []
        except MemoryError:
            reason = f"reading the page takes more than {self._mebibytes} MiB of memory"
            return {"error": ["unreadable", reason, "", ""], "last": True}, []
        except RecursionError:
            return self._ended({"error": ["unreadable", "the page is nested too deeply", "", ""]}), []
        except Exception as error:
            reason = f"the page is damaged, or of a form that is not known ({type(error).__name__})"
            return self._ended({"error": ["unreadable", reason, "", ""]}), []

    def _source(self, head: Head, body: bytes) -> Source:
        kind = Kind(head["kind"], head["media_type"])
        return Source(kind, head["charset"], head["url"], head["format"], head["section"], self._seconds, body)

    def _prepared(self) -> Head:
        """Counts what was loaded for a kind of pages as memory of the worker, not of its pages."""
        gc.collect()
        gc.freeze()
        limits.limit_memory(self._mebibytes)
        self._small = limits.resident()
        return {}

    def _of(self, page: Page) -> tuple[Head, list[bytes]]:
        if page.kind != "html":  # whose reader has done it
            text, characters = without_invisible(page.text)
            page = page._replace(text=text, removed=Removed(characters=characters))
        page = page._replace(found=Found(*(without_invisible(fact)[0] for fact in page.found)))
        body = page.text.encode("utf-8", "replace")
        fields = page._asdict() | {"found": page.found._asdict(), "removed": page.removed._asdict()}
        del fields["text"], fields["image"]
        return self._ended({"page": fields}), [body]

    def _ended(self, head: Head) -> Head:
        self._pages -= 1
        grown = limits.resident() - self._small
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
    limits.forbid_core_dumps()
    limits.limit_memory(mebibytes)
    _serve(requests, answers, _Worker(seconds, mebibytes, pages).answer)


def _serve(requests: BinaryIO, answers: BinaryIO, answer: Callable[[Head, bytes], tuple[Head, list[bytes]]]) -> None:
    while start := requests.read(LENGTHS.size):
        head_length, body_length = lengths_of(start)
        head = json.loads(requests.read(head_length))
        reply, parts = answer(head, requests.read(body_length))
        answers.write(packed(reply, sum(map(len, parts))))
        answers.writelines(parts)
        answers.flush()
