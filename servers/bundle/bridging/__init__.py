"""What `connect` and `expose` have in common: another server, which stands behind this program."""
