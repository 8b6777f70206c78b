"""The rules for the messages of one session, on the server's side and on the client's, in both eras.

In the handshake era, up to version 2025-11-25, a session begins with `initialize`. In the stateless era, from
2026-07-28 on, each request has an envelope, which contains what the handshake established before.
"""
