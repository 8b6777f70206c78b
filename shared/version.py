"""The version of this distribution, which every server reports."""

__version__ = "0.1.0"
