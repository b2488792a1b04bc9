"""Records to tables, figures and pages; one folder a kind of record; matplotlib is loaded by `page` only."""
