"""Which of two names is a slip of the pen for the other, and which is another name."""

import pytest
from gpufleet.lint.names import slip


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("user", "users"),
        ("team-queu", "team-queue"),
        ("half-gpo", "half-gpu"),
        ("a100flavor", "a100-flavor"),
        ("defualt-flavor", "default-flavor"),
    ],
)
def test_slips(name: str, known: str) -> None:
    assert slip(name, [known, "something-else"]) == known


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("worker-1", "worker-2"),
        ("worker1-queue", "worker2-queue"),
        ("h100-flavor", "a100-flavor"),
        ("l40-inference", "l40s-inference"),
        ("research-team-a", "research-team-b"),
        ("inference-workloads-dev", "inference-workloads-prd"),
        ("jobs-queue-us-east", "jobs-queue-us-west"),
        ("research-queue", "research-queue-2"),
        ("training-large", "training-large-spot"),
    ],
)
def test_names_of_their_own(name: str, other: str) -> None:
    assert slip(name, [other]) is None and slip(other, [name]) is None
