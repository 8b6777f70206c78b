"""Decides which hosts may be reached, and connects only to addresses that were checked."""
