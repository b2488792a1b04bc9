"""What users ask for: plain arguments in, a frozen record out."""
