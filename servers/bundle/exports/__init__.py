"""What a catalog says, in the forms that registries, desktop hosts and container catalogs take."""
