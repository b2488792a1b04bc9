"""A fit as a boundary-value problem: experiments, nodes, rows, and their linearisation."""
