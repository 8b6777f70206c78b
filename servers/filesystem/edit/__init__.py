"""Changing the disk: nothing half written, nothing lost."""
