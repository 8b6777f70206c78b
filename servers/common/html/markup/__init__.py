"""Corrects a tree before it is written: hidden, embedded and annotated parts, and content in attributes."""
