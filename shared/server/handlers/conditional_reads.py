"""Conditional reads of resources that a client already holds.

<-  result   {"contents": [...], "_meta": {ETAG: "5f0c..."}}                           of every read
     -> request  {"uri": ..., "_meta": {ETAG: "5f0c..."}}                                  what the client has
    <-  result   {"contents": [], "_meta": {ETAG: "5f0c...", NOT_MODIFIED: true}}          where that is still so

Only a client that declared the extension CONDITIONAL_READS is answered without contents: any other would treat them
as empty. The etag is made of the contents, so it holds for every replica, and after a restart. Their `_meta` is
ignored: a page that was loaded again is the same page. But if `_meta` contains an `etag`, as for files, this replaces
the hash of the contents: hashing 90 KB takes a quarter of the time of reading them.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from ...errors import InvalidParams
from ...protocol.identity import Peer
from ...protocol.types.resources import CONDITIONAL_READS, ETAG, NOT_MODIFIED
from ...protocol.wire.jsonrpc import json_of

_ETAG_BYTES = 16


def cached_etag(peer: Peer, meta: Mapping[str, Any]) -> str | None:
    """Return the etag in the `meta` of a request, if the peer accepts "not modified" as an answer. Raises
    InvalidParams if the etag is not a string."""
    if ETAG not in meta or not peer.can("extensions", CONDITIONAL_READS):
        return None
    etag = meta[ETAG]
    if not isinstance(etag, str):
        raise InvalidParams(f'"{ETAG}" must be a string in "params._meta"')
    return etag


def add_etag(result: dict[str, Any], known_etag: str | None) -> dict[str, Any]:
    """Return the `result` of a read with its etag, and without contents if the etag equals `known_etag`."""
    hasher = hashlib.blake2b(digest_size=_ETAG_BYTES)
    for content in result["contents"]:
        own_etag = content.get("_meta", {}).get("etag")
        if isinstance(own_etag, str):
            kind, identity = "etag", own_etag
        else:
            kind = "text" if "text" in content else "blob"
            identity = content[kind]
        data = identity.encode("utf-8", "surrogatepass")
        hasher.update(json_of([content["uri"], content.get("mimeType"), kind, len(data)]))
        hasher.update(data)
    etag = hasher.hexdigest()
    if etag == known_etag:
        return {"contents": [], "_meta": {ETAG: etag, NOT_MODIFIED: True}}
    return {**result, "_meta": {ETAG: etag}}
