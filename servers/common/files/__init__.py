"""Files beneath the allowed directories, and nothing outside them.

Besides `shared/program/files`, this is the only place that uses descriptors.
"""
