"""`propagate` with the extrapolation integrator and its usual tolerance, whatever the door's defaults are."""

from __future__ import annotations

from functools import partial

from hpcfit.flow import propagate as door

METHODS = ("extrapolation", "extrapolation-differences")
propagate = partial(door.propagate, method="extrapolation", tolerance=1e-12)
