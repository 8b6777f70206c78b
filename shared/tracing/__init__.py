"""The trace that the current work belongs to, and the duration of its parts. Independent of any collector."""
