"""State and tangents through time: arrays of lanes in, arrays of lanes out."""
