"""What is known of the data as a whole: it tells where and how finely a fit begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.linear.segments import Segments
from hpcfit.mpi.together import gathered
from hpcfit.records import Array, Series

FAR_BELOW, ROUGHEST = 1e-5, 1e-8


@dataclass(frozen=True)
class Summary:
    """Columns of every experiment (E, o), by the observed quantities; NaN where there are no values."""

    mean_sigma: Array  # NaN also where sigma is unknown
    least_sigma: Array
    largest: Array  # modulus of a value
    has_sigma: NDArray[np.bool_]  # (E,)

    @classmethod
    def of(cls, experiments: Sequence[Series], names: Sequence[str]) -> Summary:
        """Of data that this rank has as a whole."""
        found = np.full((len(experiments), len(names), 4), np.nan)
        for e, series in enumerate(experiments):
            columns = [names.index(name) for name in series.names]
            found[e, columns] = _told(series, [slice(0, series.count)])[0]
        return cls._from(found, [series.sigma is not None for series in experiments])

    @classmethod
    def across(
        cls,
        comm: Any,
        parts: Mapping[int, tuple[Series, Sequence[slice]]],
        names: Sequence[str],
        segments: Segments,
        has_sigma: Sequence[bool],
    ) -> Summary:
        """The same of data that are spread over ranks; parts: rows of some experiments and their segments.

        Sums go by segment, in their order, so that they do not depend on the ranks.
        """
        own = np.full((len(segments), len(names), 4), np.nan)
        for e, (series, rows) in parts.items():
            here = np.flatnonzero(segments.experiment == e)
            columns = np.array([names.index(name) for name in series.names])
            own[np.ix_(here, columns)] = _told(series, rows)
        table, experiment = gathered(comm, own), gathered(comm, segments.experiment)
        begins = np.flatnonzero(np.diff(experiment, prepend=-1))
        sums = np.add.reduceat(np.nan_to_num(table[..., :2]), begins, axis=0)
        sums[sums[..., 1] == 0.0] = np.nan
        least = np.fmin.reduceat(table[..., 2:3], begins, axis=0)
        largest = np.fmax.reduceat(table[..., 3:], begins, axis=0)
        return cls._from(np.concatenate([sums, least, largest], axis=2), has_sigma)

    @classmethod
    def _from(cls, table: Array, has_sigma: Sequence[bool]) -> Summary:
        total, count, least, largest = np.moveaxis(table, -1, 0)
        return cls(total / count, least, largest, np.array(has_sigma, dtype=bool))

    def precision(self, what: Any, names: Sequence[tuple[str, ...]]) -> Array:
        """Of each state at the nodes (n,): 0 where it does not come from data.

        A local parameter is not hidden: it begins without gaps, and these count nothing in any unit.
        """
        found = np.zeros(len(what.model.states))
        for i, name in enumerate(what.model.states):
            if name in what.local:
                found[i] = 1.0
            elif name not in what.start and all(name in own for own in names):
                column = what.names.index(name)
                sigma = np.where(self.has_sigma, self.mean_sigma[:, column], 1.0)
                found[i] = 1.0 / sigma.max() if np.isfinite(self.largest[:, column]).all() else 0.0
        return found

    def rough(self) -> float:
        """Far below the smallest error, relative to the size of what is observed; 0: not known."""
        if not self.has_sigma.all():
            return 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = self.least_sigma / self.largest
        return min(FAR_BELOW * float(np.nanmin(relative)), ROUGHEST)


def _told(series: Series, parts: Sequence[slice]) -> Array:
    """Of some rows and others: sum and number of sigma, the least, and the largest value (parts, o, 4)."""
    found = np.full((len(parts), len(series.names), 4), np.nan)
    there = np.array([part.stop > part.start for part in parts])
    begins = np.array([part.start for part in parts])[there]
    if len(begins):
        found[there, :, 3] = np.fmax.reduceat(np.abs(series.values), begins, axis=0)
    if len(begins) and series.sigma is not None:
        found[there, :, 0] = np.add.reduceat(np.nan_to_num(series.sigma), begins, axis=0)
        found[there, :, 1] = np.add.reduceat(np.isfinite(series.sigma), begins, axis=0, dtype=float)
        found[there, :, 2] = np.fmin.reduceat(series.sigma, begins, axis=0)
    return found
