"""The changes that were made, with what was there before."""
