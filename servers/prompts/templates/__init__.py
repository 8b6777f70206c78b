"""Renders a prompt's template, with the values of its arguments, to messages."""
