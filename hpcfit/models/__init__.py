"""Equations as pure functions, and everything that can be known about them without computing a path."""
