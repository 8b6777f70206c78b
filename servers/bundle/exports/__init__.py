"""Exports of catalog entries, in the formats of registries, desktop hosts and container catalogs."""
