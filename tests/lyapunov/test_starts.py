"""Frames at the start: orthonormal, the same every time, symplectic with the flow where it belongs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcfit.lyapunov.starts import orthonormal_frame, symplectic_frame


@given(st.integers(1, 30), st.integers(0, 5))
def test_frames_are_orthonormal_and_depend_on_the_seed_alone(n: int, seed: int) -> None:
    frame = orthonormal_frame(n, seed)
    np.testing.assert_allclose(frame.T @ frame, np.eye(n), atol=1e-14)
    np.testing.assert_array_equal(frame, orthonormal_frame(n, seed))
    if n > 1:
        assert not np.array_equal(frame, orthonormal_frame(n, seed + 1))


@pytest.mark.parametrize("beside", [False, True])
@given(st.integers(1, 8), st.integers(0, 3), st.integers(0, 10**6))
def test_symplectic_frames(beside: bool, half: int, seed: int, draw: int) -> None:
    """Columns n-1-i are J times columns i; the first half is tangent to H and holds the flow."""
    n, pair = 2 * half, np.array([[0.0, 1.0], [-1.0, 0.0]])
    form = np.kron(np.eye(half), pair) if beside else np.kron(pair, np.eye(half))
    slope = np.random.default_rng(draw).standard_normal(n)
    frame = symplectic_frame(form, slope, seed)
    np.testing.assert_allclose(frame.T @ frame, np.eye(n), atol=1e-13)
    np.testing.assert_allclose(frame[:, half:], (form @ frame[:, :half])[:, ::-1], atol=1e-15)
    np.testing.assert_allclose(slope @ frame[:, :half], 0.0, atol=1e-13 * np.linalg.norm(slope))
    flow = form @ slope / np.linalg.norm(slope)
    np.testing.assert_allclose(frame[:, half - 1], flow, atol=1e-14)
    products = frame.T @ form @ frame  # of conjugate columns 1, of all others 0
    np.testing.assert_allclose(np.abs(products), np.fliplr(np.eye(n)), atol=1e-13)


def test_a_start_at_rest_has_a_frame_too() -> None:
    form = np.kron([[0.0, 1.0], [-1.0, 0.0]], np.eye(2))
    frame = symplectic_frame(form, np.zeros(4))
    np.testing.assert_allclose(frame.T @ frame, np.eye(4), atol=1e-14)
