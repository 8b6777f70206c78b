"""Rendering: the template of a prompt and the values of its arguments as messages."""
