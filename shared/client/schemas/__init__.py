"""JSON Schemas of a server: their cost, and the checks made with them."""
