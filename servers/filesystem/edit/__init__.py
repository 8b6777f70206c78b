"""Changes on the disk: nothing half written, nothing lost."""
