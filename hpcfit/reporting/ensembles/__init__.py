"""Ensembles of fits: tables, figures, pages."""
