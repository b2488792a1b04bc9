"""Linear least squares on a chain of nodes: exact or weak continuity, one border of shared parameters."""
