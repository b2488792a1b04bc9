"""From a model to machine code: the only room with a compiler and its cache."""
