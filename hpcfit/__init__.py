"""hpcfit: fit differential equations to chaotic data, on one core or many.

>>> from hpcfit import model, simulate
"""

from importlib.metadata import version

from hpcfit import math
from hpcfit.models.define import Example, model
from hpcfit.records import InputError, Noise
from hpcfit.studies.simulate import simulate

__version__ = version("hpcfit")
__all__ = ["Example", "InputError", "Noise", "__version__", "math", "model", "simulate"]
