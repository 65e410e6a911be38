"""Traces, profiles and the debug stream: nrt_sys_trace.h, nrt_profile.h, ndebug_stream.h."""

from __future__ import annotations

from typing import Any

from emulator.errors import InputError
from emulator.runtime.errors import invalid
from emulator.runtime.inspecting import ACTIVITIES, InspectConfig, trace_config
from emulator.runtime.trace import EVENT_TYPES, TraceConfig, read_filter
from neurontools.libnrt.calls import does
from neurontools.libnrt.calls_session import model_of
from neurontools.libnrt.library import Library

__all__: list[str] = []


class FetchOptions:
    """How much a fetch takes, and of which core."""

    def __init__(self) -> None:
        self.set_defaults()

    def set_defaults(self) -> None:
        """Take everything."""
        self.most: int | None = None
        self.core: int | None = None


class ContinuousOptions:
    """Options of continuous profiling."""

    def __init__(self) -> None:
        self.folder = "./output"


def _default_config(library: Library) -> TraceConfig:
    """Return a configuration as variables have it."""
    return trace_config(library.runtime.environ, library.runtime.options.trace_events)


def _kind(library: Library, name: Any) -> set[str]:
    library.need(name)
    try:
        # In the variable's syntax ^ excludes; these calls say so with `enabled`.
        return read_filter(library.text(name).removeprefix("^"))
    except InputError as error:
        raise invalid(str(error)) from None


def _set_kind(config: TraceConfig, kinds: set[str], enabled: bool) -> None:
    if enabled:
        config.kinds |= kinds
    else:
        config.kinds -= kinds


# --- system trace ----------------------------------------------------------------------------------------------------


def _config(library: Library, pointer: Any) -> TraceConfig:
    return library.handles.get(library.number(pointer), TraceConfig)


@does("nrt_sys_trace_config_allocate")
def config_allocate(library: Library, into: Any) -> None:
    """Make options of a trace."""
    library.give(into, _default_config(library), "nrt_sys_trace_config_t *")


@does("nrt_sys_trace_config_set_defaults", "nrt_inspect_config_set_defaults")
def config_defaults(library: Library, options: Any) -> None:
    """Set options back."""
    _config(library, options).set_defaults()


@does("nrt_sys_trace_config_free", "nrt_inspect_config_free")
def config_free(library: Library, options: Any) -> None:
    """Forget options."""
    library.handles.take(library.number(options), TraceConfig)


@does("nrt_sys_trace_config_set_max_events_per_nc", "nrt_inspect_config_set_sys_trace_max_events_per_nc")
def config_most(library: Library, options: Any, most: int) -> None:
    """Set how many events of a core are kept."""
    if not most:
        raise invalid("a ring of no events")
    _config(library, options).max_events = most


@does("nrt_sys_trace_config_set_capture_enabled_for_nc", "nrt_inspect_config_set_capture_enabled_for_nc")
def config_core(library: Library, options: Any, core: int, enabled: bool) -> None:
    """Set whether events of a core are kept."""
    library.runtime.core(core)
    _config(library, options).cores[core] = bool(enabled)


@does(
    "nrt_sys_trace_config_set_capture_enabled_for_event_type",
    "nrt_inspect_config_set_capture_enabled_for_event_type_string",
)
def config_kind(library: Library, options: Any, name: Any, enabled: bool) -> None:
    """Set whether events of a kind are kept."""
    _set_kind(_config(library, options), _kind(library, name), bool(enabled))


@does("nrt_sys_trace_get_event_types")
def event_types(library: Library, into: Any, count: Any) -> None:
    """Give the kinds of events."""
    library.texts(into, count, EVENT_TYPES)


@does("nrt_sys_trace_config_get_enabled_event_types")
def enabled_types(library: Library, options: Any, into: Any, count: Any) -> None:
    """Give the kinds that are kept."""
    kinds = _config(library, options).kinds
    library.texts(into, count, tuple(kind for kind in EVENT_TYPES if kind in kinds))


@does("nrt_sys_trace_free_event_types", "nrt_inspect_config_free_activity_types")
def free_types(library: Library, array: Any, count: int) -> None:
    """Free an array of names."""
    library.free_texts(array, count)


@does("nrt_sys_trace_start")
def trace_start(library: Library, options: Any) -> None:
    """Begin a trace; without options, with the usual ones."""
    null = options == library.ffi.NULL
    library.runtime.watching.start_trace(_default_config(library) if null else _config(library, options))


@does("nrt_sys_trace_stop")
def trace_stop(library: Library) -> None:
    """End the trace."""
    library.runtime.watching.stop_trace()


@does("nrt_sys_trace_fetch_options_allocate")
def fetch_allocate(library: Library, into: Any) -> None:
    """Make options of a fetch."""
    library.give(into, FetchOptions(), "nrt_sys_trace_fetch_options_t *")


def _fetch(library: Library, pointer: Any) -> FetchOptions:
    return library.handles.get(library.number(pointer), FetchOptions)


@does("nrt_sys_trace_fetch_options_set_defaults")
def fetch_defaults(library: Library, options: Any) -> None:
    """Set options back."""
    _fetch(library, options).set_defaults()


@does("nrt_sys_trace_fetch_options_free")
def fetch_free(library: Library, options: Any) -> None:
    """Forget options."""
    library.handles.take(library.number(options), FetchOptions)


@does("nrt_sys_trace_fetch_options_set_max_events_per_nc")
def fetch_most(library: Library, options: Any, most: int) -> None:
    """Set how many events of a core are taken."""
    _fetch(library, options).most = most


@does("nrt_sys_trace_fetch_options_set_nc_idx")
def fetch_core(library: Library, options: Any, core: int) -> None:
    """Set the core whose events are taken."""
    _fetch(library, options).core = core


@does("nrt_sys_trace_fetch_events")
def fetch(library: Library, into: Any, size: Any, options: Any) -> None:
    """Give events as JSON, in memory that `nrt_sys_trace_buffer_free` takes back."""
    library.need(into, size)
    chosen = FetchOptions() if options == library.ffi.NULL else _fetch(library, options)
    trace = library.runtime.watching.trace
    if trace is None:
        raise invalid("no system trace is under way")
    raw = trace.fetch(chosen.most, chosen.core).encode()
    block = library.allocate(len(raw) + 1)
    library.ffi.memmove(block, raw, len(raw))
    library.block(block)
    into[0], size[0] = library.ffi.cast("char *", block), len(raw)


@does("nrt_sys_trace_buffer_free")
def buffer_free(library: Library, buffer: Any) -> None:
    """Free what a fetch gave."""
    if buffer != library.ffi.NULL:
        library.free_block(buffer)


# --- profiles --------------------------------------------------------------------------------------------------------


@does("nrt_profile_start")
def profile_start(library: Library, model: Any, name: Any) -> None:
    """Begin the profile of a model, whose core is its own until nrt_profile_stop; NRT_EXEC_NC_BUSY for others."""
    library.need(name)
    found = model_of(library, model)
    library.runtime.watching.start_profile(library.runtime.core(found.core), found, library.text(name))


@does("nrt_profile_stop")
def profile_stop(library: Library, name: Any) -> None:
    """End a profile and write its NTFF."""
    library.need(name)
    library.runtime.watching.stop_profile(library.text(name))


@does("nrt_profile_continuous_start")
def continuous_start(library: Library, options: Any) -> None:
    """Begin to capture every execution."""
    library.handles.get(library.number(options), ContinuousOptions)
    library.runtime.watching.start_continuous()


@does("nrt_profile_continuous_save")
def continuous_save(library: Library, core: int, options: Any) -> None:
    """Write the NTFF of the last execution of a core."""
    chosen = library.handles.get(library.number(options), ContinuousOptions)
    library.runtime.watching.save_continuous(library.runtime.core(core), chosen.folder)


@does("nrt_profile_continuous_stop")
def continuous_stop(library: Library) -> None:
    """End it."""
    library.runtime.watching.stop_continuous()


@does("nrt_inspect_begin")
def inspect_begin(library: Library) -> None:
    """Begin a capture as variables have it."""
    runtime = library.runtime
    runtime.watching.inspect(InspectConfig.of(runtime.environ, runtime.options.trace_events))


@does("nrt_inspect_begin_with_options")
def inspect_begin_with(library: Library, options: Any) -> None:
    """Begin a capture; variables count for nothing."""
    null = options == library.ffi.NULL
    library.runtime.watching.inspect(InspectConfig() if null else _inspect(library, options).copy())


@does("nrt_inspect_stop")
def inspect_stop(library: Library) -> None:
    """End a capture and write its files."""
    library.runtime.watching.stop_inspection()


@does("nrt_profile_continuous_options_allocate")
def continuous_allocate(library: Library, into: Any) -> None:
    """Make options of continuous profiling."""
    library.give(into, ContinuousOptions(), "nrt_profile_continuous_options_t *")


@does("nrt_profile_continuous_options_free")
def continuous_free(library: Library, options: Any) -> None:
    """Forget options."""
    library.handles.take(library.number(options), ContinuousOptions)


def _folder(library: Library, folder: Any) -> str:
    library.need(folder)
    text = library.text(folder)
    if not text:
        raise invalid("the output directory is empty")
    return text


@does("nrt_profile_continuous_options_set_output_dir")
def continuous_folder(library: Library, options: Any, folder: Any) -> None:
    """Set where profiles go."""
    library.handles.get(library.number(options), ContinuousOptions).folder = _folder(library, folder)


@does("nrt_inspect_config_allocate")
def inspect_allocate(library: Library, into: Any) -> None:
    """Make options of a capture."""
    library.give(into, InspectConfig(), "nrt_inspect_config_t *")


def _inspect(library: Library, pointer: Any) -> InspectConfig:
    return library.handles.get(library.number(pointer), InspectConfig)


@does("nrt_inspect_config_set_session_id")
def inspect_session(library: Library, options: Any, session: int) -> None:
    """Set the number of the session."""
    _inspect(library, options).session = session


@does("nrt_inspect_config_set_output_dir")
def inspect_folder(library: Library, options: Any, folder: Any) -> None:
    """Set where a capture goes."""
    _inspect(library, options).folder = _folder(library, folder)


@does("nrt_inspect_config_set_enable_inspect")
def inspect_enable(library: Library, options: Any, enabled: bool) -> None:
    """Set whether every execution is captured."""
    _inspect(library, options).enabled = bool(enabled)


@does("nrt_inspect_config_set_enable_inspect_on_fail")
def inspect_on_failure(library: Library, options: Any, enabled: bool) -> None:
    """Set whether executions that fail are captured."""
    _inspect(library, options).on_failure = bool(enabled)


@does("nrt_inspect_config_get_all_activity_types")
def activities(library: Library, into: Any, count: Any) -> None:
    """Give the kinds of activities."""
    library.texts(into, count, (*ACTIVITIES, "all"))


@does("nrt_inspect_config_get_enabled_activity_types")
def enabled_activities(library: Library, options: Any, into: Any, count: Any) -> None:
    """Give the kinds that are captured."""
    chosen = _inspect(library, options).activities
    library.texts(into, count, tuple(each for each in ACTIVITIES if each in chosen))


@does("nrt_inspect_config_set_activity")
def set_activity(library: Library, options: Any, name: Any, enabled: bool) -> None:
    """Set whether a kind of activity is captured."""
    library.need(name)
    text = library.text(name)
    if text not in (*ACTIVITIES, "all"):
        raise invalid(f"no activity {text!r}; there are {', '.join(ACTIVITIES)}, all")
    chosen = set(ACTIVITIES) if text == "all" else {text}
    config = _inspect(library, options)
    config.activities = config.activities | chosen if enabled else config.activities - chosen


# --- debug stream ----------------------------------------------------------------------------------------------------


@does("nrt_debug_client_connect")
def connect(library: Library, core: int, into: Any) -> None:
    """Connect to a core's stream."""
    library.need(into)
    library.runtime.core(core)
    into[0] = library.runtime.streams.connect(core)


@does("nrt_debug_client_connect_close")
def disconnect(library: Library, file: int) -> None:
    """End a connection."""
    library.runtime.streams.close(file)


@does("nrt_debug_client_read_one_event")
def read_event(library: Library, file: int, header: Any, into: Any) -> None:
    """Give one event; the payload is the caller's to free."""
    library.need(header, into)
    head, payload = library.runtime.streams.read(file)
    library.ffi.memmove(header, head, len(head))
    block = library.allocate(len(payload))
    library.ffi.memmove(block, payload, len(payload))
    into[0] = block
