"""Calls to the server behind a bridge: a module for each `CallRoute`, and the parts that several routes share."""
