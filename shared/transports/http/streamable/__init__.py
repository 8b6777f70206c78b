"""Streamable HTTP: sessions and their streams, and requests that have none."""
