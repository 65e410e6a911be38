"""Metrics of reports for Prometheus, by the names that the public Grafana board asks for. Source: runtime.md 13.3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from formats.named_tuple import NamedTuple

__all__ = ["METRICS", "MissingClientError", "Served", "Value", "values"]

# Name: what it is, its labels.
METRICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "neuroncore_utilization_ratio": ("Share of the time that a core was busy.", ("neuroncore",)),
    "execution_latency_seconds": ("Latency of executions.", ("percentile",)),
    "execution_status_total": ("Executions by how they ended.", ("status_type",)),
    "neuron_runtime_memory_used_bytes": ("Memory in use.", ("memory_location",)),
    "neuron_runtime_vcpu_usage_ratio": ("Share of the CPUs that a program took.", ("usage_type",)),
    "system_memory_total_bytes": ("Memory of the host.", ()),
    "system_memory_used_bytes": ("Memory of the host in use.", ()),
    "system_vcpu_count": ("CPUs of the host.", ()),
    "system_vcpu_usage_ratio": ("Share of the CPUs that was used.", ("usage_type",)),
    "instance_info": ("The instance.", ("instance_type",)),
}
_COMMON = ("instance_id", "runtime_tag")


class MissingClientError(Exception):
    """Say that prometheus-client is not installed."""


class Value(NamedTuple):
    """One value: its metric, labels in the metric's order, instance id, tag of the program ("" for the host's)."""

    metric: str
    labels: tuple[str, ...]
    instance_id: str
    tag: str
    value: float


def values(report: Mapping[str, Any]) -> Iterator[Value]:
    """Yield the values of a report; executions are those of its period."""
    identity = report["instance_info"]["instance_id"]
    yield Value("instance_info", (report["instance_info"]["instance_type"],), identity, "", 1)
    for process in report["neuron_runtime_data"]:
        tag, groups = process["neuron_runtime_tag"], process["report"]
        for core, one in groups.get("neuroncore_counters", {}).get("neuroncores_in_use", {}).items():
            yield Value("neuroncore_utilization_ratio", (core,), identity, tag, one["neuroncore_utilization"] / 100)
        stats = groups.get("execution_stats")
        if stats is not None:
            for name, seconds in (stats["latency_stats"]["total_latency"] or {}).items():
                yield Value("execution_latency_seconds", (name,), identity, tag, seconds)
            for name, count in stats["execution_summary"].items():
                yield Value("execution_status_total", (name,), identity, tag, count)
        used = groups.get("memory_used")
        if used is not None:
            for place in ("host", "neuron_device"):
                yield Value("neuron_runtime_memory_used_bytes", (place,), identity, tag,
                            used["neuron_runtime_used_bytes"][place])  # fmt: skip
        for name, share in groups.get("neuron_runtime_vcpu_usage", {}).get("vcpu_usage", {}).items():
            yield Value("neuron_runtime_vcpu_usage_ratio", (name,), identity, tag, share / 100)
    system = report["system_data"]
    if "memory_info" in system:
        for name in ("total", "used"):
            yield Value(f"system_memory_{name}_bytes", (), identity, "", system["memory_info"][f"memory_{name}_bytes"])
    if "vcpu_usage" in system:
        yield Value("system_vcpu_count", (), identity, "", len(system["vcpu_usage"]["usage_data"]))
        for name, share in system["vcpu_usage"]["average_usage"].items():
            yield Value("system_vcpu_usage_ratio", (name,), identity, "", share / 100)


class Served:
    """A server of metrics on a port; `show` gives it another report."""

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        try:
            import prometheus_client  # deferred: optional prometheus_client
        except ImportError:
            raise MissingClientError from None
        self._registry = prometheus_client.CollectorRegistry()
        self._metrics: dict[str, Any] = {}
        for name, (about, labels) in METRICS.items():
            kind = prometheus_client.Counter if name.endswith("_total") else prometheus_client.Gauge
            self._metrics[name] = kind(name, about, [*labels, *_COMMON], registry=self._registry)
        self._server, self._thread = prometheus_client.start_http_server(port, address, self._registry)

    def show(self, report: Mapping[str, Any]) -> None:
        """Take the values of a report: counters grow, what is gone goes."""
        for name, metric in self._metrics.items():
            if not name.endswith("_total"):
                metric.clear()
        for one in values(report):
            metric = self._metrics[one.metric].labels(*one.labels, one.instance_id, one.tag)
            if one.metric.endswith("_total"):
                metric.inc(one.value)
            else:
                metric.set(one.value)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
