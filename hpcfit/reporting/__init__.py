"""Records to tables, figures and pages; matplotlib is loaded by `figures` and `page` only."""
