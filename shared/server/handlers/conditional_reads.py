"""Reading again what a client has already.

    <-  result   {"contents": [...], "_meta": {ETAG: "5f0c..."}}                           of every read
     -> request  {"uri": ..., "_meta": {ETAG: "5f0c..."}}                                  what the client has
    <-  result   {"contents": [], "_meta": {ETAG: "5f0c...", NOT_MODIFIED: true}}          where that is still so

Only a client that declared the extension CONDITIONAL_READS is answered without contents: any other would take them
for empty. The etag is made of the contents, so it holds for every replica, and after a restart. `_meta` beside them
has no part in it: a page that was loaded again is the same page. But an `etag` of their own that stands there, as for
files, stands for them: to hash 90 KB takes a quarter of the time of such a read.
"""

from _blake2 import blake2b  # hashlib would load OpenSSL with it, 4 MiB that a server on stdio does not need
from collections.abc import Mapping
from typing import Any

from ...errors import InvalidParams
from ...protocol.identity import Peer
from ...protocol.types.resources import CONDITIONAL_READS, ETAG, NOT_MODIFIED
from ...protocol.wire.jsonrpc import json_of

_ETAG_BYTES = 16


def held_etag(peer: Peer, meta: Mapping[str, Any]) -> str | None:
    """The etag in the `meta` of a request, where the peer takes "not modified" for an answer. Raises InvalidParams
    for one that is no string."""
    if ETAG not in meta or not peer.can("extensions", CONDITIONAL_READS):
        return None
    held = meta[ETAG]
    if not isinstance(held, str):
        raise InvalidParams(f'"{ETAG}" must be a string in "params._meta"')
    return held


def tagged(result: dict[str, Any], held: str | None) -> dict[str, Any]:
    """The `result` of a read with its etag; where that is the one `held`, without contents."""
    made = blake2b(digest_size=_ETAG_BYTES)
    for one in result["contents"]:
        kind, told = _identity(one)
        data = told.encode("utf-8", "surrogatepass")
        made.update(json_of([one["uri"], one.get("mimeType"), kind, len(data)]))
        made.update(data)
    etag = made.hexdigest()
    if etag == held:
        return {"contents": [], "_meta": {ETAG: etag, NOT_MODIFIED: True}}
    return {**result, "_meta": {ETAG: etag}}


def _identity(one: Mapping[str, Any]) -> tuple[str, str]:
    own = one.get("_meta", {}).get("etag")
    if isinstance(own, str):
        return "etag", own
    return ("text", one["text"]) if "text" in one else ("blob", one["blob"])
