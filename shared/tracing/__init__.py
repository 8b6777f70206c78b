"""The trace to which the current work belongs, and the duration of its parts. Independent of any collector."""
