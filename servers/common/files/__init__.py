"""Finds, opens and locks files below the allowed directories, and nothing outside them.

Only this package and `shared/program/files` use file descriptors.
"""
