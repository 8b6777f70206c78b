"""Conditional reads of resources: a client that still has the contents of an earlier read does not get them again.

    <-  result   {"contents": [...], "_meta": {ETAG: "5f0c..."}}                    every read returns an etag
    ->  request  {"uri": ..., "_meta": {ETAG: "5f0c..."}}                           the etag that the client has
    <-  result   {"contents": [], "_meta": {ETAG: "5f0c...", NOT_MODIFIED: true}}   if it is still the current one

Only a client that declared the extension CONDITIONAL_READS receives a result without contents; any other would take
the resource to be empty. The etag is a hash of the contents, so it is the same on every replica, and after a restart.
The `_meta` of the contents is not part of it, since it may contain, for example, the time at which a web page was
loaded. But if that `_meta` contains an `etag`, as for files, it replaces the hash: hashing 90 KB takes a quarter of
the time of reading them.
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
    """Return the etag in the `meta` of a request. None if there is none, or if the peer does not support conditional
    reads. Raises InvalidParams if the etag is not a string."""
    if ETAG not in meta or not peer.can("extensions", CONDITIONAL_READS):
        return None
    etag = meta[ETAG]
    if not isinstance(etag, str):
        raise InvalidParams(f'"{ETAG}" must be a string in "params._meta"')
    return etag


def add_etag(result: dict[str, Any], known_etag: str | None) -> dict[str, Any]:
    """Return the `result` of a read with its etag, and without contents if that is `known_etag`, the client's."""
    hasher = hashlib.blake2b(digest_size=_ETAG_BYTES)
    for content in result["contents"]:
        content_etag = content.get("_meta", {}).get("etag")
        if isinstance(content_etag, str):
            kind, identity = "etag", content_etag
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
