"""Canned queries: files with SQL that become tools."""
