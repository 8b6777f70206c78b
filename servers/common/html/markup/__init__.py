"""Corrections of a tree before it is written: hidden, embedded, annotated parts, and content of attributes."""
