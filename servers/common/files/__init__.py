"""Files beneath directories that were allowed, and nothing outside them.

With `shared/program/files` it is the only place that uses descriptors.
"""
