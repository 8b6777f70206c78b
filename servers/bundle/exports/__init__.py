"""Exports of catalog entries for registries, desktop hosts and container catalogs."""
