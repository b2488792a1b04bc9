"""Our speed and accuracy against other integrators; see README.md."""
