"""Streamable HTTP: sessions and their streams, and requests without a session."""
