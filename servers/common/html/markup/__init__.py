"""Markup that is mended in a tree before it is written: what is hidden, embedded, noted, or said by attributes."""
