"""What the growth of tangent frames tells: exponents with honest errors, dimension, starts, sections."""
