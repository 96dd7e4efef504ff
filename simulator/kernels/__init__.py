"""Kernels that nobody has compiled: typed designs and the instruction streams that a compiler would make of them."""
