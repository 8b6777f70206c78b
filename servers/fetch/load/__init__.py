"""Loads pages, from the URL to the bytes: redirects, limits, robots.txt, and the cache."""
