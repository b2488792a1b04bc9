"""The one Gauss-Newton loop and what belongs to it; it knows problems, not differential equations."""
