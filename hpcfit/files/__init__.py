"""Files that appear whole or not at all: the only room that knows h5py."""
