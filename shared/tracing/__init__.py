"""Tracing, independent of any collector: the trace to which the current work belongs, and spans for its parts."""
