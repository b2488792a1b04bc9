"""Functions for equations, on numbers, arrays and symbols: `from hpcfit.math import sin, where`."""

from hpcfit.models.math import *  # noqa: F403
from hpcfit.models.math import __all__, __getattr__  # noqa: F401
