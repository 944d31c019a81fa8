"""Parts share a call only where it was seen to make no difference; otherwise they run one by one."""

import torch
from torch import Tensor
from worldroom.kernels.row_grouping import TOGETHER, alike, by_parts

X = torch.arange(2.0 * TOGETHER)
"""Eight parts, two long."""


class Counted:
    """Doubles; from `feels` parts in a call on it is off by one."""

    def __init__(self, feels: int) -> None:
        self.feels, self.calls = feels, list[int]()

    def __call__(self, x: Tensor) -> Tensor:
        self.calls.append(len(x) // 2)
        return 2 * x + (1 if len(x) // 2 >= self.feels else 0)


def test_every_count_of_parts_is_asked() -> None:
    assert alike(Counted(feels=9), X, 2)
    assert [alike(Counted(feels), X, 2) for feels in (2, 5, 8)] == [False, False, False]


def test_what_is_not_alike_runs_one_by_one() -> None:
    run = Counted(feels=2)
    assert torch.equal(by_parts(run, X[:6], 2, together=False), 2 * X[:6])
    assert run.calls == [1, 1, 1]


def test_no_call_has_more_parts_than_were_asked_for() -> None:
    run = Counted(feels=9)
    twice = torch.cat([X, X, X[:2]])
    assert torch.equal(by_parts(run, twice, 2, together=True), 2 * twice)
    assert run.calls == [8, 8, 1]
