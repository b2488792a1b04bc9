"""Kernels for other CPUs, and for systems of one to a hundred states."""

from __future__ import annotations

import platform
import subprocess
import sys

import numpy as np
import pytest

from hpcfit.flow.propagate import propagate
from hpcfit.models.catalogue import find

SHOW = """
import numpy as np
from hpcfit.flow.propagate import propagate
from hpcfit.models.catalogue import find
for name in ("lorenz", "double_pendulum", "chua"):
    flow = find(name)
    example = flow.examples[0]
    times = np.linspace(0.0, example.duration / 4, 5)
    values = list(example.start.values()), list(example.parameters.values())
    lanes = propagate(flow, times, *values, sensitivities=True)
    print(*(number.hex() for number in (*lanes.states[0, -1], *lanes.by_parameters[0, -1].ravel())))
"""


def numbers(monkeypatch: pytest.MonkeyPatch, cpu: str) -> np.ndarray:
    monkeypatch.setenv("HPCFIT_CPU", cpu)
    done = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return np.array([float.fromhex(word) for word in done.stdout.split()])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names of x86 CPUs")
def test_builds_without_avx2_and_without_avx512_agree_with_the_native_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    native = numbers(monkeypatch, "native")
    portable = numbers(monkeypatch, "x86-64")
    np.testing.assert_allclose(portable, native, rtol=1e-11, atol=1e-12 * np.abs(native).max())
    with open("/proc/cpuinfo") as cpuinfo:
        has_avx2 = " avx2 " in cpuinfo.read()
    if has_avx2:
        avx2 = numbers(monkeypatch, "x86-64-v3")
        np.testing.assert_allclose(avx2, native, rtol=1e-11, atol=1e-12 * np.abs(native).max())


def test_an_unknown_cpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCFIT_CPU", "z80")
    done = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, timeout=60)
    assert "does not know the CPU 'z80'; set HPCFIT_CPU" in done.stderr


def test_a_hundred_states_with_all_tangents_against_the_extrapolation_integrator() -> None:
    flow = find("lorenz96", 100)
    start = list(flow.examples[0].start.values())
    lanes = propagate(flow, [0.0, 0.5], start, [8.0], sensitivities=True)
    check = propagate(
        flow, [0.0, 0.5], start, [8.0], sensitivities=True, method="extrapolation", tolerance=1e-13
    )
    for part in ("states", "by_start", "by_parameters"):
        ours, theirs = getattr(lanes, part), getattr(check, part)
        assert np.abs(ours - theirs).max() < 1e-11 * np.abs(theirs).max(), part
