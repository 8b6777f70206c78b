"""Servers behind this one: several as one, and those of others through a bridge."""
