"""`neurontools cc fault`: planted faults are named; without one the same collective ends."""

from __future__ import annotations

import pytest

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.counting import counted


@pytest.mark.parametrize(
    ("words", "cause", "ranks", "status"),
    [
        (("allr", "--algo", "ring", "--drop-rank", 5, "--at-step", 3), "stopped", [5], 1200),
        (("allr", "--drop-rank", 63), "stopped", [63], 1200),
        (("allr", "--missing-rank", 7), "trigger", [7], 1200),
        (("allg", "--nodes", 2, "--ranks", 2, "--lose", "0>64"), "lost", [0, 64], 1200),
        (("allg", "--nodes", 2, "--ranks", 2, "--dead-proxy", 64), "proxy", [64], 1206),
    ],
)
def test_faults_are_named(cli: Cli, words: tuple[object, ...], cause: str, ranks: list[int], status: int) -> None:
    faulty = [at for at, word in enumerate(words) if str(word).startswith(("--drop", "--at", "--miss", "--lo", "--de"))]
    clean = [word for at, word in enumerate(words) if at not in faulty and at - 1 not in faulty]
    assert cli("cc", "fault", *clean, "--size", "16kb").status == 0
    ended = cli("cc", "fault", *words, "--size", "16kb", "--json")
    (hang,) = checked_json(ended, "cc fault")["hangs"]
    assert ended.status == 5 and (hang["cause"], hang["ranks"], hang["status"]) == (cause, ranks, status)
    assert f"rank {ranks[0]}" in hang["sentence"]
    text = cli("cc", "fault", *words, "--size", "16kb").out
    assert ("NRT_NETWORK_PROXY_FAILURE" if status == 1206 else "NRT_EXEC_HW_ERR_COLLECTIVES") in text


def test_a_slow_link(cli: Cli) -> None:
    words = ("cc", "fault", "allg", "--algo", "ring", "--size", "16MiB", "--json")
    clean = checked_json(cli(*words), "cc fault")["time_ns"]
    slow = checked_json(cli(*words, "--slow-link", "neuronlink n0 c0>c1=50"), "cc fault")["time_ns"]
    assert slow > 3 * clean


@pytest.mark.parametrize(
    "words", [("--drop-rank", 64), ("--slow-link", "x"), ("--slow-link", "x=0.5"), ("--lose", "1-2")]
)
def test_what_makes_no_sense(cli: Cli, words: tuple[object, ...]) -> None:
    assert cli("cc", "fault", "allr", *words).status == 2


@pytest.mark.parametrize(("words", "says"), [
    (("--slow-link", "nope=3"), "nothing goes over 'nope'"),
    (("--slow-link", "neuronlink n0 c14>c15=3"), "nothing goes over"),
    (("--lose", "0>1:99"), "transfers to rank 1: there is no number 99"),
    (("--lose", "0>63"), "0 transfers to rank 63"),
    (("--drop-rank", 5, "--at-step", 99), "rank 5 has no step 99"), (("--dead-proxy", 3), "needs no network proxy"),
])  # fmt: skip
def test_faults_that_the_collective_never_comes_by(cli: Cli, words: tuple[object, ...], says: str) -> None:
    """Without a word it would look as if the collective had survived them."""
    ended = cli("cc", "fault", "allr", "--ranks", 8, "--size", "16kb", *words)
    assert ended.status == 2 and says in ended.error_line


def test_the_explanation_is_quick() -> None:
    from emulator.machine.collectives.engine import Engine, Faults
    from emulator.machine.collectives.explain import explain
    from emulator.machine.collectives.group import Group
    from emulator.machine.collectives.plan import Request, build
    from emulator.machine.machine import Machine

    machine = Machine("trn2.48xlarge")
    engine = Engine(machine, faults=Faults(stopped={17: 9}))
    job = engine.add(build(Request("allreduce", Group(machine, range(64)), 64, "ring")), 4)
    for rank in range(64):
        engine.trigger(job, rank, 0)
    engine.run()
    did, hang = counted(lambda: explain(engine, job), builtins=True)
    assert did < 1_000 and hang is not None and hang.ranks == (17,) and hang.chain[-1].startswith("rank 17, ")
