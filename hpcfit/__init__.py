"""hpcfit: fit differential equations to chaotic data, on one core or many.

>>> from hpcfit import Experiment, fit, model, simulate, spectrum
"""

from importlib.metadata import version

from hpcfit import math
from hpcfit.models.define import Example, model
from hpcfit.models.jumps import Jump
from hpcfit.records import InputError, Noise
from hpcfit.shooting.experiments import Experiment
from hpcfit.studies.fit import fit
from hpcfit.studies.simulate import simulate
from hpcfit.studies.spectrum import spectrum

__version__ = version("hpcfit")
__all__ = [
    "Example",
    "Experiment",
    "InputError",
    "Jump",
    "Noise",
    "__version__",
    "fit",
    "math",
    "model",
    "simulate",
    "spectrum",
]
