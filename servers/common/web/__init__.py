"""Shared parts of the servers' web pages: modules, styles, and the assembly of one page from them."""
