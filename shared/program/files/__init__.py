"""Atomic file writes, with system calls on a name in a directory."""
