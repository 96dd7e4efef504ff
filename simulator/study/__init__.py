"""Trade studies: which hardware parameter is worth its cost, for which kernels, and how sure that is."""
