"""Paths: tables, figures, pages."""
