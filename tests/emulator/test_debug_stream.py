"""A printed tensor ends with the last byte of it that arrives, whatever the pattern in which it does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from emulator.debug_stream import DebugStream
from emulator.events import Event, Touched
from formats.debug_stream import tensor_name
from formats.regions import Region


def test_strided_arrivals_count_their_bytes_only() -> None:
    name = tensor_name(0, "rows")
    stream, values = DebugStream(), np.arange(40, dtype=np.float32)
    device: Any = SimpleNamespace(cores=[0], tensor=lambda wanted: values)
    tensor: Any = SimpleNamespace(name=name, address=0x1000, nbytes=160)
    stream._device, stream._tensors = device, (tensor,)
    for number, half in enumerate((0, 8)):  # two halves of ten rows
        region = Region("HBM", 0, 0, 1, 0x1000 + half, 152, (((16, 10),), 8))
        assert region.size == 80
        assert stream.records() == ()
        stream.on_event(Event(number, number, 0, 0, "q", 0, None, "dma", (), Touched((), (region,))))
    (record,) = stream.records()
    assert (record.number, record.prefix) == (1, "rows") and record.values is values
