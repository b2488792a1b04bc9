"""Ensembles over a grid, cell by cell: tables, curves, maps."""
