"""Ask a capture everything it can be asked."""

from __future__ import annotations

from formats.errors import FormatError, UnsupportedError
from formats.ntff import open_ntff

__all__ = ["read_everything"]


def read_everything(data: bytes) -> str:
    """Return "read" where everything has a value, else the name of the error; anything but those two is a failure."""
    try:
        ntff = open_ntff(data)
        assert repr(ntff) and ntff.target
        for section in ntff.sections:
            ntff.raw(section)
        for each in ntff.cores:
            for buffer in ntff.buffers(each.core):
                for pc in range(len(buffer.words)):
                    assert isinstance(buffer.words[pc].text, str)
                    compiler_pc = buffer.compiler_pc(pc)
                    assert compiler_pc is None or isinstance(compiler_pc, int)
                assert buffer.map.loaded_words(10) is not None
            ntff.executed(each.core)
            ntff.signals(each.core)
            assert ntff.outside(each.core) >= 0
            for packet in ntff.packets(each.core):
                assert ntff.queue_name(each.core, packet.engine, packet.ring)
            ntff.clock_changes(each.core)
    except (FormatError, UnsupportedError) as error:
        assert "\n" not in str(error) and len(str(error)) < 500
        return type(error).__name__
    return "read"
