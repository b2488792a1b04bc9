"""The generated C of frames: the same text twice, and no larger for many states than it has to be."""

from __future__ import annotations

import pytest

from hpcfit.kernels.frames import FrameWriter, frames_source
from hpcfit.models.catalogue import find


@pytest.mark.parametrize(("name", "tangents"), [("lorenz", 3), ("chua", None), ("henon_map", 2)])
def test_the_same_text_twice(name: str, tangents: int | None) -> None:
    first, second = (frames_source(find(name), tangents, wide=True) for _ in range(2))
    assert first == second


def test_rows_of_f_x_are_tables_so_that_the_text_grows_with_the_states_alone() -> None:
    small, large = (frames_source(find("lorenz96", n), None, wide=True) for n in (20, 80))
    assert len(large) < 4.5 * len(small)


def test_sums_of_all_places_stay_in_registers() -> None:
    for wide, registers in ((True, 32), (False, 16)):
        for tangents in (1, 4, 7, 13):
            text = FrameWriter(find("lorenz96", 13), tangents, wide=wide).text()
            sizes = dict(
                line.removeprefix("#define ").split(" ", 1) for line in text.splitlines() if "#define" in line
            )
            assert int(sizes["TOGETHER"]) * int(sizes["WIDEST"]) < registers
