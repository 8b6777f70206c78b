"""Runs and explains queries, and continues and exports their rows."""
