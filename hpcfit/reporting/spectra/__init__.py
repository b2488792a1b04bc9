"""Lyapunov spectra as text, tables, pictures and pages."""
