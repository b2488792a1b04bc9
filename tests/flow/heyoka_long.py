"""Variational equations by heyoka with 64-bit mantissas, and how much a path amplifies rounding."""

from __future__ import annotations

import heyoka as hy
import numpy as np

from tests.flow.heyoka_oracle import right_hand_sides

LONG = np.longdouble


class Oracle:
    """One path: states (T, n), derivatives by start (T, n, n) and by parameters (T, n, n_p)."""

    def __init__(self, model, start, parameters, times, tolerance=1e-19):
        self.n, self.n_p = len(model.states), len(model.parameters)
        self.times = np.asarray(times, dtype=LONG)
        which = hy.var_args.vars | hy.var_args.params if self.n_p else hy.var_args.vars
        system = hy.var_ode_sys(right_hand_sides(model), which, order=1)
        self.integrator = hy.taylor_adaptive(
            system,
            [LONG(value) for value in start],
            pars=[LONG(value) for value in parameters],
            time=self.times[0],
            tol=LONG(tolerance),
            compact_mode=True,
            fp_type=LONG,
        )
        self.fresh = self.integrator.state[self.n :].copy()  # unit tangents
        grid = self.integrator.propagate_grid(self.times)[-1]
        self.states, self.by_start, self.by_parameters = self._split(grid)

    def _split(self, grid):
        tangents = grid[:, self.n :].reshape(len(grid), self.n, self.n + self.n_p)
        return grid[:, : self.n], tangents[..., : self.n], tangents[..., self.n :]

    def growths(self):
        """Up to each output, the largest factor from a relative error of a state to a later one; at least 1.

        Both relative to the state's maximum along the path. Taken between all pairs of outputs: a path
        that first contracts and then expands amplifies more than its derivatives by start tell.
        """
        scale = np.abs(self.states).max(axis=0)
        scale[scale == 0] = 1
        largest, products = [LONG(1)], []
        for k in range(len(self.times) - 1):
            self.integrator.time = self.times[k]
            self.integrator.state[: self.n] = self.states[k]
            self.integrator.state[self.n :] = self.fresh
            self.integrator.propagate_until(self.times[k + 1])
            over = self._split(self.integrator.state[None].copy())[1][0] * scale / scale[:, None]
            products = [over @ before for before in products] + [over]
            largest.append(max(largest[-1], *(np.abs(product).max() for product in products)))
        return np.array(largest, dtype=float)


def relative(ours, exact):
    """Largest error of each column (T, n, m), or state (T, n), relative to its maximum along the path."""
    axes = (0, 1) if exact.ndim == 3 else 0
    if not exact.size:
        return 0.0
    scale = np.abs(exact).max(axis=axes)
    scale[scale == 0] = 1
    return float((np.abs(ours - exact).max(axis=axes) / scale).max())
