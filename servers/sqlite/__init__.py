"""The SQLite server: asks databases anything, changes them where the operator allows it."""
