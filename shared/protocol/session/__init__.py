"""The rules for the messages of one session, on the server's side and on the client's, in both eras.

The handshake era is that of the versions up to 2025-11-25, where a session begins with `initialize`. The stateless
era begins with 2026-07-28, where each request contains what the handshake established before: its envelope.
"""
