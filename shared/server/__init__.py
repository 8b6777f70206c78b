"""Servers made from plain functions: declarations, handlers of methods, and the loop that serves a peer."""
