"""Ranks and what they say to each other: the only room that knows mpi4py."""
