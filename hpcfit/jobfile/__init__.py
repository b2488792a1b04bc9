"""Job files: what may stand in them, and every mistake at once."""
