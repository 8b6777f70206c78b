"""Conversion between messages and bytes."""
