"""Real ranks: what one rank meets, all ranks meet, and nobody waits for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.together import share
from tests.conftest import GOOD_JOB, Mpirun

ERROR_ON_ONE_RANK = """
import sys
from hpcfit.mpi.world import world
from hpcfit.mpi.together import everywhere, is_agreed, on_root
comm = world()
guilty = comm.size - 1

def action():
    if comm.rank == guilty:
        raise ValueError(f"rank {guilty} stumbled")
    return comm.rank

try:
    everywhere(comm, action)
except ValueError as error:
    assert is_agreed(comm, error)
    told = str(error)
else:
    told = "no error"
print(f"{comm.rank} of {comm.size}: {told}; root says {on_root(comm, lambda: comm.rank + 10)}\\n", end="")
"""

RAISE_ON_LAST_RANK = """
import sys
import hpcfit.commands.run as verb
from hpcfit.__main__ import main
from hpcfit.records import InputError

def stumble(comm, arguments):
    if comm.rank == comm.size - 1:
        raise {error}
    comm.barrier()
    return 0

verb.run = stumble
sys.exit(main(["run", "job.toml"]))
"""


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_an_error_on_one_rank_is_the_same_error_on_all(ranks: int, mpirun: Mpirun) -> None:
    done = mpirun(ranks, "-c", ERROR_ON_ONE_RANK)
    expected = {f"{r} of {ranks}: rank {ranks - 1} stumbled; root says 10" for r in range(ranks)}
    assert set(done.stdout.splitlines()) == expected, done.stderr


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(("error", "status"), [("InputError('bad')", 2), ("RuntimeError('bug')", 1)])
def test_an_error_that_only_one_rank_knows_ends_all_ranks(
    ranks: int, error: str, status: int, mpirun: Mpirun, tmp_path: Path
) -> None:
    done = mpirun(ranks, "-c", RAISE_ON_LAST_RANK.replace("{error}", error), cwd=tmp_path, seconds=30)
    assert done.returncode == status
    assert ("Traceback" in done.stderr) == (status == 1)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_bad_input_on_all_ranks_is_said_once(ranks: int, mpirun: Mpirun, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(GOOD_JOB.replace("lorenz", "lorentz"))
    done = mpirun(ranks, "-m", "hpcfit", "run", "job.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("did you mean 'lorenz'") == 1
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["job.toml"]


def test_shares_are_contiguous_complete_and_even() -> None:
    class Rank:
        def __init__(self, rank: int, size: int) -> None:
            self.rank, self.size = rank, size

    for size in (1, 2, 3, 7):
        for count in (0, 1, 6, 7, 8, 100):
            parts = [share(Rank(rank, size), count) for rank in range(size)]
            assert [i for part in parts for i in part] == list(range(count))
            assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_one_rank_without_mpi_behaves_like_a_communicator() -> None:
    assert (SERIAL.rank, SERIAL.size) == (0, 1)
    assert SERIAL.bcast("x") == "x"
    assert SERIAL.allgather(3) == [3]
