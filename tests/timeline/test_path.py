"""The critical path takes exactly as long as the run, and nothing that is not on it matters."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.device import Device
from emulator.dtypes import numpy_dtype
from emulator.timeline import Recorder, critical_path
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.neff import Neff, open_neff
from tests.timeline.support import CASES, case, free, order, record, words

KINDS = {"execute", "issue", "semaphore", "barrier", "port", "generate", "start", "data", "hbm", "completion"}
known = cache(case)


def check(recorder: Recorder) -> None:
    """Assert that the path covers the run without gap or overlap, and that every link has a cause."""
    path = critical_path(recorder)
    links, device = path.links, recorder.device
    assert path.end_ps == device.now_ps > 0
    assert links[0].start_ps == 0 and links[-1].end_ps == device.now_ps
    assert [link.end_ps for link in links[:-1]] == [link.start_ps for link in links[1:]]
    assert {link.kind for link in links} <= KINDS
    assert sum(path.by_kind().values()) == device.now_ps


@pytest.mark.parametrize("name", CASES)
def test_the_path_is_as_long_as_the_run(name: str) -> None:
    check(record(*known(name)))


@pytest.mark.parametrize("target", ["trn1", "trn3"])
def test_other_chips(target: str) -> None:
    from tests.checks.kernels import built

    check(record(*built("softmax", target)))


def test_two_cores_meet_at_a_barrier() -> None:
    recorder = record(*known("pair"))
    path = critical_path(recorder)
    assert {link.owner.core for link in path.links} == {0, 1}
    barrier = [link for link in path.links if link.kind == "barrier"]
    assert len(barrier) == 1 and barrier[0].owner.core == 0  # core 1 has more to do: core 0 waits for it
    assert barrier[0].duration_ps == recorder.device.propagation_ps


def corpus_files() -> list[Path]:
    root = os.environ.get("NEURONTOOLS_CORPUS")
    return [] if not root else sorted(path for path in Path(root).rglob("*.neff") if path.stat().st_size < 1 << 20)


def inputs_of(neff: Neff) -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {
        t.name: random.standard_normal(t.shape).astype(numpy_dtype(Dtype.from_numpy_name(t.dtype))) for t in neff.inputs
    }


@pytest.mark.skipif(not corpus_files(), reason="NEURONTOOLS_CORPUS names no folder with NEFFs")
def test_real_files() -> None:
    for path in corpus_files():
        neff = open_neff(path)
        check(record(neff, inputs_of(neff)))


@cache
def normal(name: str) -> tuple[Recorder, Any, list[Any]]:
    recorder = record(*known(name))
    critical = critical_path(recorder).words
    return recorder, order(recorder), [word for word in words(recorder) if word not in critical]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CASES), st.data())
def test_words_off_the_path_do_not_matter(name: str, data: st.DataObject) -> None:
    before, was, others = normal(name)
    chosen = frozenset(data.draw(st.sets(st.sampled_from(others), min_size=1)))
    after = record(*known(name), free(chosen))
    # Made free, a word may hand its transfer to the DMA engines before another one's: that is another schedule.
    if order(after) == was:
        assert after.device.now_ps == before.device.now_ps


@pytest.mark.parametrize("name", CASES)
def test_every_word_off_the_path_alone(name: str) -> None:
    before, was, others = normal(name)
    same = 0
    for word in others:
        after = record(*known(name), free((word,)))
        if order(after) == was:
            same += 1
            assert after.device.now_ps == before.device.now_ps, word
    assert same > len(others) / 2


@pytest.mark.parametrize("name", CASES)
def test_words_on_the_path_do_matter(name: str) -> None:
    recorder = record(*known(name))
    critical = critical_path(recorder)
    longest = max((link for link in critical.links if link.kind == "execute"), key=lambda link: link.duration_ps)
    after = record(*known(name), free(((longest.owner, longest.row),)))
    assert recorder.device.now_ps - longest.duration_ps <= after.device.now_ps < recorder.device.now_ps


def test_a_shaken_schedule_has_none() -> None:
    neff, inputs = known("softmax")
    device = Device(neff.target, seed=1)
    device.load(neff)
    device.set_inputs(inputs)
    recorder = Recorder(device)
    device.observers.append(recorder)
    device.run()
    with pytest.raises(UnsupportedError, match="shaken"):
        critical_path(recorder)
