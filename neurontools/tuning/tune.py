"""Search for the best variant of a script's kernels, by emulated time, among those that are right."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import IO, Any, Self

from emulator.errors import InputError
from formats.errors import FormatError, NotFoundError
from formats.neff.fields import load
from neurontools.command.files import need_file
from neurontools.command.results import plain
from neurontools.tuning.halving import runs_of
from neurontools.tuning.results import Order, Trial, Tuned
from neurontools.tuning.search import search_of
from neurontools.tuning.space import Space, key_of
from neurontools.tuning.trial import of_json, run_trial
from neurontools.tuning.workers import Workers, persistent_trial, workers

__all__ = ["tune"]

_SLOWER = 4  # a variant that takes so many times as long as the best so far is ended there
_PARALLEL_READS = "trials.jsonl"

Tell = Callable[[int, int, Trial | None], None]


def tune(
    order: Order,
    space: Space,
    *,
    method: str = "climb",
    most: int | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    folder: Path | None = None,
    seed: int = 0,
    rungs: Sequence[tuple[str, ...]] = (),
    tell: Tell | None = None,
) -> Tuned:
    """Try variants and return what was found.

    `space` adds to what kernels declare, and takes its place. `most` is how many variants are tried, by default a fifth
    of them, ten at least. `folder` keeps every trial as it comes; a search in the same folder goes on from there.
    Successive halving tries these on the first of `rungs`, arguments that give the script smaller problems, the best of
    each rung on the next, and the last ones on the problem of the order.
    Raises NotFoundError where nothing is declared, FormatError for a folder that holds another search or a script that
    fails as it stands, InputError for rungs without successive halving and for it without rungs.
    """
    need_file(Path(order.file))
    if (method == "halving") != bool(rungs):
        raise InputError("successive halving needs rungs, arguments for smaller problems, and no other method has any")
    baseline = run_trial(order, {}, True)
    if not baseline.ok:
        raise FormatError(f"the script as it stands is no variant to compare with: {baseline.state}: "
                          f"{baseline.message}", path=order.file)  # fmt: skip
    whole: Space = {**{name: tuple(values) for name, values in baseline.declared.items()}, **space}
    if not whole:
        raise NotFoundError(
            f"{order.file}: no kernel declares parameters (neurontools.tunable), and neither --param "
            "nor --schedule names one"
        )
    variants = prod(map(len, whole.values()))
    most = min(variants, max(variants // 5, 10) if most is None else most)
    with _Kept(folder, order, whole, rungs) as kept, workers(jobs, cluster) as hands:
        trials = _search(order, whole, method, most, seed, rungs, hands, kept, tell)
    right = [trial for trial in trials if trial.ok and trial.rung == len(rungs)]
    best = min(right, key=lambda trial: trial.time_ps, default=None)
    if best is not None and best.time_ps < baseline.time_ps:
        best = best._replace(bottleneck=run_trial(order, best.values, True).bottleneck)
    return Tuned(order.file, method, {name: list(values) for name, values in whole.items()}, variants, len(trials),
                 kept.resumed, baseline, best, tuple(trials), tuple(rungs))  # fmt: skip


def _search(order: Order, space: Space, method: str, most: int, seed: int, rungs: Sequence[tuple[str, ...]],
            hands: Workers, kept: _Kept, tell: Tell | None) -> list[Trial]:  # fmt: skip
    search, trials = search_of(method, space, seed, most, len(rungs)), list[Trial]()
    runs = sum(runs_of(most, len(rungs)))
    orders = [*(order._replace(arguments=arguments) for arguments in rungs), order]
    open_: dict[Any, tuple[int, dict[str, Any]]] = {}
    best: list[Trial | None] = [None] * len(orders)  # on each rung

    def take(trial: Trial) -> None:
        trials.append(trial)
        search.tell(trial)
        before = best[trial.rung]
        if trial.ok and (before is None or trial.time_ps < before.time_ps):
            best[trial.rung] = trial
        if tell is not None:
            tell(len(trials), runs, best[trial.rung])

    while True:
        while len(trials) + len(open_) < runs and len(open_) < hands.room:
            values = search.ask()
            if values is None:
                break
            rung = search.rung
            known = kept.known.get((rung, key_of(values)))
            if known is not None:
                take(known)
            else:
                leader = best[rung]
                limit_ps = 0 if leader is None else leader.time_ps * _SLOWER
                open_[hands.submit(persistent_trial, orders[rung], values, False, limit_ps)] = rung, values
        if not open_:
            return trials
        for future in hands.first(set(open_)):
            rung, _ = open_.pop(future)
            trial = future.result()._replace(rung=rung)
            kept.add(trial)
            take(trial)


class _Kept:
    """Trials in a folder, one line of JSON each; what is there already is not tried again."""

    def __init__(self, folder: Path | None, order: Order, space: Space, rungs: Sequence[tuple[str, ...]]) -> None:
        self.known: dict[tuple[int, str], Trial] = {}
        self.resumed = 0
        self._file: IO[str] | None = None
        if folder is None:
            return
        source = hashlib.sha256(Path(order.file).read_bytes()).hexdigest()
        head = {"search": {**order._asdict(), "source": source, "names": sorted(space),
                           **({"rungs": rungs} if rungs else {})}}  # fmt: skip
        head = json.loads(json.dumps(head))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / _PARALLEL_READS
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()  # a search that was killed while it wrote
        if lines and load(lines[0], str(path)).raw != head:
            raise FormatError("the folder holds a search of another script, or with other options", path=str(path))
        for number, line in enumerate(lines[1:], 2):
            trial = of_json(load(line, f"{path}:{number}"))
            self.known[trial.rung, key_of(trial.values)] = trial
        self.resumed = len(self.known)
        with path.open("wb") as file:
            file.writelines(lines)
        self._file = path.open("a", encoding="utf-8")
        if not lines:
            self._write(head)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, trial: Trial) -> None:
        """Keep a trial, on the disk before the next one begins; one whose process died is tried again next time."""
        if trial.state != "died":
            self._write(plain(trial))

    def _write(self, value: Any) -> None:
        if self._file is not None:
            print(json.dumps(value, default=str), file=self._file, flush=True)
            os.fsync(self._file.fileno())
