"""Defines prompts, and parses the file formats from which they are read."""
