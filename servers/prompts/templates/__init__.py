"""Rendering of a prompt's template and the values of its arguments to messages."""
