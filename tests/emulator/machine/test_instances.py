"""Instances and chips as data: sums agree, wiring equals the published tables, what is only described says so."""

from __future__ import annotations

import pytest

from emulator.arch import ARCHS
from emulator.machine.chips import CHIPS, chip_of, executable
from emulator.machine.facts import GIB
from emulator.machine.hosts import HOSTS, host_devices
from emulator.machine.instances import ALIASES, INSTANCES, instance_of
from emulator.machine.machine import Machine, Place
from formats.cites import keys
from formats.errors import FormatError, NotFoundError, UnsupportedError
from formats.targets import TARGETS


def test_every_target_has_a_chip_and_an_instance() -> None:
    assert list(CHIPS) == [target.name for target in sorted(TARGETS, key=lambda one: list(CHIPS).index(one.name))]
    assert {one.target for one in INSTANCES.values()} == set(CHIPS)


@pytest.mark.parametrize("name", INSTANCES)
def test_an_instance_is_the_sum_of_its_chips(name: str) -> None:
    one = INSTANCES[name]
    chip = one.chip
    assert one.device_bytes.value == one.chips * chip.hbm_stacks.value * chip.hbm_bytes.value
    assert one.device_bandwidth.value == pytest.approx(one.chips * chip.hbm_bandwidth.value, rel=0.001)
    assert one.chips % one.servers == 0
    extent = 1
    for part in one.shape:
        extent *= part
    assert extent == one.chips


@pytest.mark.parametrize("target", ARCHS)
def test_a_chip_is_what_its_cores_are_built_for(target: str) -> None:
    arch, chip = ARCHS[target], CHIPS[target]
    for mine, theirs in ((chip.cores, arch.cores), (chip.hbm_stacks, arch.hbm_stacks), (chip.hbm_bytes, arch.hbm_bytes),
                         (chip.lnc, arch.lnc), (chip.semaphores, arch.semaphores), (chip.events, arch.events),
                         (chip.dma_rings, arch.dma_rings)):  # fmt: skip
        assert mine.value == theirs.value
    assert chip.dma_engines.value == arch.dma_engines.value * arch.cores.value


def test_every_fact_has_unit_provenance_and_cite() -> None:
    machines = [Machine(one).figures for one in INSTANCES.values() if one.target != "inf1"]
    for facts in [one.facts for one in (*INSTANCES.values(), *CHIPS.values())] + machines:
        for name, fact in facts.items():
            assert fact.unit and fact.provenance in ("documented", "observed", "inferred", "ours"), name
            assert keys(fact.cite), name


def test_names() -> None:
    assert instance_of(" TRN2.48xLarge ").name == "trn2.48xlarge"
    assert {instance_of(name).name for name in ALIASES} == set(ALIASES.values())
    with pytest.raises(NotFoundError, match=r"no instance type 'trn2.49xlarge'; did you mean trn2.48xlarge"):
        instance_of("trn2.49xlarge")


def test_hosts_know_every_chip_of_their_instance() -> None:
    for name, rows in HOSTS.items():
        assert [row.device for row in rows] == list(range(INSTANCES[name].chips))
        assert len({row.bdf for row in rows}) == len(rows)
    assert [row.device for row in host_devices(instance_of("trn2.48xlarge")) if row.numa_node == 0] == list(
        range(4, 12)
    )
    assert [row.device for row in host_devices(instance_of("trn1.32xlarge")) if row.numa_node == 0] == [
        0, 1, 4, 5, 8, 9, 12, 13,
    ]  # fmt: skip
    assert host_devices(instance_of("trn2-ultraserver")) == ()


def test_inferentia_is_described_and_not_executed() -> None:
    assert chip_of("inf1").cores.value == 4 and not chip_of("inf1").emulated
    for ask in (lambda: executable("inf1"), lambda: Machine("inf1.24xlarge")):
        with pytest.raises(UnsupportedError, match=r"Inferentia \(NeuronCore-v1\) is described, not executed"):
            ask()


def test_inf2_is_a_target_of_its_own() -> None:
    machine = Machine("inf2.48xlarge")
    trn1 = Machine("trn1.32xlarge")
    assert (machine.lnc, machine.ranks, machine.ranks_per_chip) == (1, 24, 2)
    assert machine.chip.links is not None and machine.chip.links.value == 2
    assert machine.chip.hbm_bytes.value == 16 * GIB
    assert "efa_rate" not in machine.figures and "efa_rate" in trn1.figures
    assert machine.figures["link_rate"].value == trn1.figures["link_rate"].value == 48 * GIB
    with pytest.raises(UnsupportedError, match="no EFA: collectives stay inside one instance"):
        Machine("inf2.48xlarge", nodes=2)
    with pytest.raises(UnsupportedError, match="NCC_EARG001"):
        Machine("inf2.48xlarge", lnc=2)


def test_ranks_of_trn2() -> None:
    assert (Machine("trn2.48xlarge").ranks, Machine("trn2.48xlarge", lnc=1).ranks) == (64, 128)
    machine = Machine("trn2.48xlarge", nodes=4)
    assert machine.ranks == 256 and machine.place(64 + 4 * 5 + 3) == Place(1, 5, 3)
    assert [machine.place(rank) for rank in range(machine.ranks)] == [
        Place(node, chip, core) for node in range(4) for chip in range(16) for core in range(4)
    ]
    # 50 Gbit/s a rank of two cores, 25 of one.
    assert machine.figures["efa_rate"].value == 50e9 / 8
    assert Machine("trn2.48xlarge", lnc=1).figures["efa_rate"].value == 25e9 / 8
    with pytest.raises(NotFoundError, match=r"no rank 256: 4 x trn2.48xlarge have 0 to 255"):
        machine.place(256)
    with pytest.raises(FormatError, match="number of nodes"):
        Machine("trn2.48xlarge", nodes=0)
    with pytest.raises(UnsupportedError, match="at most 16,384"):
        Machine("trn2.48xlarge", nodes=1000)


def test_the_way_of_bytes() -> None:
    machine = Machine("trn2.48xlarge", nodes=2)
    assert machine.way(3, 3) == ()
    assert [hop.kind for hop in machine.way(0, 3)] == ["chip"]
    names = [hop.name for hop in machine.way(0, 40)]
    assert names == [f"neuronlink n0 {step}" for step in ("c0>c1", "c1>c2", "c2>c6", "c6>c10")]
    assert [hop.kind for hop in machine.way(0, 64)] == ["efa", "efa"]
    assert [hop.kind for hop in Machine("trn3-ultraserver-gen2").way(0, 4)] == ["sled-switch"] * 2
    assert [hop.kind for hop in Machine("trn3-ultraserver-gen2").way(0, 400)] == ["rack-switch"] * 2
    assert [hop.kind for hop in Machine("trn2-ultraserver").way(0, 64)] == ["between-servers"]
