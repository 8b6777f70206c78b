"""The presentation of pages and their pieces to clients."""
