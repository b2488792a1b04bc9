"""Units in which increments are measured: they follow the problem, so that answers do not depend on ours."""

from __future__ import annotations

import numpy as np

from hpcfit.linear.chain import Chain, Scales, Unknowns

SMALLEST_PART = 1e-3  # of the largest state: the unit of a state that is (still) zero everywhere


def natural_scales(chain: Chain, z: Unknowns) -> Scales:
    """A state counts in its root mean square; a parameter in what moves an interval's end by a unit."""
    links = max(chain.links_by_parameters.shape[1], 1)
    arrivals = chain.residuals.links + z.nodes[:, 1:]
    size = np.sqrt(0.5 * ((z.nodes**2).mean(axis=1) + (arrivals**2).sum(axis=1) / links))
    states = np.maximum(size, SMALLEST_PART * size.max(axis=1, keepdims=True))
    states = np.where(states > 0.0, states, 1.0)
    slopes = chain.links_by_parameters
    moved = np.sqrt(np.einsum("mjiq,mjiq,mi->mq", slopes, slopes, states**-2.0) / links)
    with np.errstate(divide="ignore"):
        parameters = np.where(moved > 0.0, 1.0 / moved, np.maximum(np.abs(z.parameters), 1.0))
    return Scales(states, parameters)
