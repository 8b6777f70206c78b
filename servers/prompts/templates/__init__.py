"""Rendering: from the template of a prompt and the values of its arguments to messages."""
