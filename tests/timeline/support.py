"""Runs of kernels with a recorder, as they are and with some words made free."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from emulator.device import Device
from emulator.timeline import EngineTrack, Owner, QueueTrack, Recorder
from formats.neff import Neff, open_neff
from neurontools.nki.launch import build_neff
from tests.checks.kernels import KERNELS, built

__all__ = ["CASES", "case", "free", "order", "record"]

Reprice = Callable[[Any, Any, int, int], tuple[int, int]]
CASES = (*KERNELS, "tiles", "pair")


def case(name: str) -> tuple[Neff, dict[str, Any]]:
    """Return a kernel's file and its inputs."""
    if name == "tiles":
        from tests.builder.test_end_to_end import BF16, build, numbers, tiled_product

        inputs = {"left": numbers(256, 256, dtype=BF16), "right": numbers(256, 1024, dtype=BF16, seed=1)}
        return open_neff(build([tiled_product("trn2", BF16, 256, 256, 1024)], "tiles").to_bytes()), inputs
    if name == "pair":
        import numpy as np

        import neurontools.nki.isa as nisa
        import neurontools.nki.language as nl

        def pair(x: Any) -> Any:
            own = nl.program_id(0)
            between = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            tile = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[own * 128 : own * 128 + 128, 0 : x.shape[1]])
            for _ in range(1 + 3 * own):
                nisa.activation(dst=tile, op=nl.tanh, data=tile)
            nisa.dma_copy(dst=between[own * 128 : own * 128 + 128, 0 : x.shape[1]], src=tile)
            nisa.core_barrier(between, (0, 1))
            other = 128 - own * 128
            nisa.dma_copy(dst=tile, src=between[other : other + 128, 0 : x.shape[1]])
            nisa.dma_copy(dst=out[own * 128 : own * 128 + 128, 0 : x.shape[1]], src=tile)
            return out

        x = np.random.default_rng(0).standard_normal((256, 64), np.float32)
        neff = build_neff(pair, (x,), {}, target="trn2", lnc=2)
        return neff, {neff.inputs[0].name: x}
    return built(name)


def record(neff: Neff, inputs: Mapping[str, Any], reprice: Reprice | None = None) -> Recorder:
    """Run to the end and return what the recorder saw."""
    device = Device(neff.target, len(neff.subgraphs))
    device.load(neff)
    device.set_inputs(inputs)
    device.reprice = reprice
    recorder = Recorder(device)
    device.observers.append(recorder)
    assert device.run() == "finished", device.fault or device.hang
    return recorder


def free(rows: Collection[tuple[Owner, int]]) -> Reprice:
    """Return a hook that takes the cost off the words at these rows."""

    def reprice(engine: Any, loaded: Any, interval: int, latency: int) -> tuple[int, int]:
        row = engine.completed + len(engine.in_flight)
        return (0, 0) if (Owner(engine.core.index, engine.name), row) in rows else (interval, latency)

    return reprice


def order(recorder: Recorder) -> Any:
    """Return what a schedule has besides times: the order in which shared things are given out, and states of the chip.

    These are transfers on DMA engines and how long each has one (the first read of an idle engine takes longer), words
    on memory ports, changes of semaphores.
    """
    names = {
        track.transfer[row]: (owner, row)
        for owner, track in recorder.tracks.items()
        if isinstance(track, QueueTrack)
        for row in range(len(track))
    }
    who = {track.number[row]: (owner, row) for owner, track in recorder.tracks.items() for row in range(len(track))}
    return (
        {
            resource: [
                (names[hold.transfer], hold.end_ps - hold.start_ps)
                for hold in map(taken.__getitem__, range(len(taken)))
            ]
            for resource, taken in recorder.holds.items()
        },
        {port: [(use.owner, use.row) for use in uses] for port, uses in recorder.ports.items()},
        {counter: [who[number] for number in changes.number] for counter, changes in recorder.changes.items()},
    )


def words(recorder: Recorder) -> list[tuple[Owner, int]]:
    """Return owner and row of every word that ran."""
    return [
        (owner, row)
        for owner, track in recorder.tracks.items()
        if isinstance(track, EngineTrack)
        for row in range(len(track))
    ]
