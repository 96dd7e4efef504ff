"""Which design is best for a problem on a chip: spaces of designs, a fast screen, a search, a database."""
