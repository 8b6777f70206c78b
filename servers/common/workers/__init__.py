"""Processes beside a server: what may not be trusted, or can not be interrupted, is done there."""
