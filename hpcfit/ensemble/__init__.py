"""Many realisations of one problem."""
