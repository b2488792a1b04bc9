"""What one core can do at best: fused multiply-adds in registers, as a measure of machines."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path

SOURCE = """
typedef double v __attribute__((vector_size(sizeof(double) * WIDTH)));
double spin(long rounds)
{
    v a[12], b, c;
    for (int i = 0; i < 12; i++) for (int l = 0; l < WIDTH; l++) a[i][l] = i + 0.1 * l;
    for (int l = 0; l < WIDTH; l++) { b[l] = 0.999999; c[l] = 1e-7; }
    for (long r = 0; r < rounds; r++) for (int i = 0; i < 12; i++) a[i] = a[i] * b + c;
    double sum = 0;
    for (int i = 0; i < 12; i++) for (int l = 0; l < WIDTH; l++) sum += a[i][l];
    return sum;
}
"""
ROUNDS = 5_000_000


def gigaflops() -> float:
    """The most billion operations per second that vectors of any width reach, over several tries."""
    return max(_measured(width) for width in (4, 8))


def _measured(width: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        source, product = Path(folder) / "peak.c", Path(folder) / "peak.so"
        source.write_text(SOURCE)
        flags = ["-O3", "-march=native", "-ffp-contract=fast", f"-DWIDTH={width}", "-shared", "-fPIC"]
        subprocess.run(["cc", *flags, "-o", str(product), str(source)], check=True)
        spin = ctypes.CDLL(str(product)).spin
    spin.argtypes, spin.restype = [ctypes.c_long], ctypes.c_double
    least = float("inf")
    for _ in range(5):
        begin = time.process_time()
        spin(ROUNDS)
        least = min(least, time.process_time() - begin)
    return 2.0 * 12 * width * ROUNDS / least * 1e-9
