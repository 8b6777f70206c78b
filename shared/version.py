"""The version of this distribution, which every server reports."""

__all__ = ["__version__"]

__version__ = "0.1.0"
