"""Fits: tables, figures, pages."""
