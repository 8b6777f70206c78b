"""Observation of a running server by its operators."""
