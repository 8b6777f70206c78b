"""Calls to the server behind a bridge: one module for each kind of session, and what several kinds use."""
