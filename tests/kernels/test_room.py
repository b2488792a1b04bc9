"""Memory that is used again: only when nobody looks at it any more."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from hpcfit.kernels import room as rooms
from hpcfit.kernels.room import MOST_FREE, SMALLEST, room

LARGE = 2 * SMALLEST


@pytest.fixture(autouse=True)
def _nothing_free(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A list of free memory of our own."""
    gc.collect()
    monkeypatch.setattr(rooms, "_free", [])
    yield
    gc.collect()


def address(array: np.ndarray) -> int:
    return int(array.ctypes.data)


@pytest.mark.parametrize("shape", [(LARGE,), (2, SMALLEST), (3, 5, 7, SMALLEST // 8), (SMALLEST, 1, 3)])
def test_an_array_has_the_shape_that_was_asked_for_and_is_like_one_of_numpy(shape: tuple[int, ...]) -> None:
    for _ in range(3):  # new, and used again
        array = room(*shape)
        assert array.shape == shape
        assert array.dtype == float
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert address(array) % 8 == 0
        array[:] = 7.0
        assert (array == 7.0).all()
        assert array.sum() == 7.0 * array.size
        del array


@pytest.mark.parametrize("shape", [(), (0,), (4, 0, 3), (3,), (SMALLEST - 1,), (2, 2)])
def test_small_arrays_are_left_to_numpy(shape: tuple[int, ...]) -> None:
    array = room(*shape)
    assert array.shape == shape
    assert array.base is None
    del array
    assert rooms._free == []


def test_memory_is_used_again_when_it_is_free_and_not_before() -> None:
    first = room(LARGE)
    where = address(first)
    second = room(LARGE)
    assert address(second) != where
    del first
    third = room(LARGE)
    assert address(third) == where
    assert len({address(second), address(third), address(room(LARGE))}) == 3


@pytest.mark.parametrize(
    "kept",
    [
        lambda array: array[3:5],
        lambda array: array.reshape(2, -1)[1],
        lambda array: array[::-2],
        lambda array: array.reshape(2, -1).T,
        lambda array: np.broadcast_to(array[:1], (4, 5)),
        lambda array: array.view(np.int64),
        lambda array: np.asarray(memoryview(array)),
        lambda array: np.ascontiguousarray(array),
        lambda array: [array[k : k + 1] for k in range(3)],
        lambda array: lambda: array,
    ],
)
def test_a_view_keeps_the_memory(kept: Callable[[np.ndarray], object]) -> None:
    array = room(LARGE)
    where = address(array)
    array[:] = 5.0
    view = kept(array)
    del array
    gc.collect()
    assert rooms._free == []
    others = [room(LARGE) for _ in range(3)]
    for other in others:
        assert address(other) != where
        other[:] = 1.0
    if isinstance(view, np.ndarray) and view.dtype == float:
        assert (view == 5.0).all()
    del view
    gc.collect()
    assert address(room(LARGE)) == where


def test_numbers_stay_as_long_as_the_last_of_several_views() -> None:
    array = room(4, SMALLEST)
    array[:] = np.arange(4.0)[:, None]
    rows = list(array)
    del array
    while len(rows) > 1:
        rows.pop()
        room(4, SMALLEST)[:] = -1.0
        for k, row in enumerate(rows):
            assert (row == k).all()


def test_a_copy_keeps_nothing() -> None:
    array = room(LARGE)
    copy, where = array.copy(), address(array)
    del array
    assert address(room(LARGE)) == where
    assert len(copy) == LARGE


def test_memory_that_is_too_small_or_far_too_large_is_not_used() -> None:
    """Between half and all of it."""
    array = room(4 * SMALLEST)
    where = address(array)
    del array
    for count in (4 * SMALLEST + 1, 2 * SMALLEST - 1, SMALLEST):
        other = room(count)
        assert address(other) != where
        assert other.shape == (count,)
        del other
        del rooms._free[1:]
    for count in (2 * SMALLEST, 3 * SMALLEST, 4 * SMALLEST):
        other = room(count)
        assert address(other) == where
        assert other.shape == (count,)
        del other
        assert len(rooms._free[0]) == 4 * SMALLEST  # all of it is free again


def test_not_more_than_a_few_blocks_wait() -> None:
    arrays = [room(LARGE) for _ in range(MOST_FREE + 5)]
    last = address(arrays[-1])
    while arrays:
        del arrays[0]
    assert len(rooms._free) == MOST_FREE
    assert address(room(LARGE)) == last  # the one that was used last
