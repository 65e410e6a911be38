"""The table of commands, made from their own files by `python -m tools`; rows may be reordered."""

from __future__ import annotations

from formats.named_tuple import NamedTuple

__all__ = ["TABLE", "Listed"]


class Listed(NamedTuple):
    """The line that says what a command or a group does; a command's module, whose `app` holds it.

    The name of a `default` command can be left out after its group's.
    """

    summary: str
    module: str = ""
    default: bool = False


TABLE: dict[str, Listed] = {
    "run": Listed("Run a script with NKI kernels, or a NEFF, on the emulator.", "neurontools.running.command"),
    "debug": Listed("Step a kernel, a NEFF or an assembler program, and look inside.", "neurontools.debugger.command"),
    "check": Listed("Find races, undefined bytes, bad accesses and waits that never end.", "neurontools.check.command"),
    "diff-run": Listed(
        "Find the first instruction whose result differs in two runs.",
        "neurontools.divergence.command",
    ),
    "profile": Listed("Show where the time of a program goes, and compare programs and what-ifs."),
    "profile run": Listed(
        "Show where the time goes, and what would save some of it.",
        "neurontools.profile.command",
        default=True,
    ),
    "profile validate": Listed("Emulate what was published, and compare the times.", "neurontools.validation.command"),
    "neff": Listed("Look into a NEFF, check it, take it apart and put it together."),
    "neff info": Listed("Show what a NEFF is for: header, target, tensors, sizes.", "neurontools.neff.info"),
    "neff ls": Listed("List the members of a NEFF's archive.", "neurontools.neff.ls"),
    "neff tensors": Listed("List the tensors of a NEFF.", "neurontools.neff.tensors"),
    "neff vars": Listed("List the variables of a subgraph.", "neurontools.neff.vars"),
    "neff queues": Listed("List the DMA queues of a subgraph and what they carry.", "neurontools.neff.queues"),
    "neff dma": Listed("List the transfers of a subgraph.", "neurontools.neff.dma"),
    "neff graph": Listed("Show the node graph of a NEFF.", "neurontools.neff.graph"),
    "neff features": Listed("List what a NEFF asks of the runtime.", "neurontools.neff.features"),
    "neff stats": Listed("Count instructions, waits, transfers and bytes.", "neurontools.neff.stats"),
    "neff diff": Listed("Compare two NEFFs.", "neurontools.neff.diff"),
    "neff where": Listed("Find the instructions of a source line, and where they come from.", "neurontools.neff.where"),
    "neff acts": Listed("Show the activation functions of a NEFF and how exact they are.", "neurontools.neff.acts"),
    "neff load-check": Listed("Predict whether the Neuron runtime loads a NEFF.", "neurontools.neff.load_check"),
    "neff survey": Listed("Report how much of many NEFFs is understood.", "neurontools.neff.survey"),
    "neff verify": Listed("Check that a NEFF is whole and consistent.", "neurontools.neff.verify"),
    "neff unpack": Listed("Take a NEFF apart into a folder.", "neurontools.neff.unpack"),
    "neff pack": Listed("Put an unpacked folder together into a NEFF.", "neurontools.neff.pack"),
    "disasm": Listed("List the instructions of a NEFF or of a raw instruction stream.", "neurontools.assembly.disasm"),
    "asm": Listed("Assemble a .s file into a NEFF or into raw instruction words.", "neurontools.assembly.asm"),
    "core": Listed("Look into a core dump, say what went wrong, compare, take apart."),
    "core info": Listed("Show what a core dump is of: chip, outcome, status, NEFF, size.", "neurontools.core.info"),
    "core why": Listed("Say what went wrong: the fault, or who waits for whom.", "neurontools.core.why"),
    "core ls": Listed("List the parts of a core dump, or the dumps in a folder.", "neurontools.core.ls"),
    "core engines": Listed("Show where every engine stood, and its registers.", "neurontools.core.engines"),
    "core queues": Listed("List the DMA queues and the transfers not complete.", "neurontools.core.queues"),
    "core semaphores": Listed("List semaphores and events and who waits for them.", "neurontools.core.semaphores"),
    "core dma": Listed("List the rings of the DMA engines and their descriptors.", "neurontools.core.dma"),
    "core memory": Listed("List the memories of a core dump, or print what is in them.", "neurontools.core.memory"),
    "core disasm": Listed("List the instructions around where an engine stood.", "neurontools.core.disasm"),
    "core verify": Listed("Check a core dump, and its instructions against a NEFF.", "neurontools.core.verify"),
    "core diff": Listed("Compare two core dumps.", "neurontools.core.diff"),
    "core triage": Listed(
        "Group many dumps, find the first failure of each execution, say what is likeliest wrong.",
        "neurontools.triage.command",
    ),
    "core extract": Listed("Take a core dump apart into a folder.", "neurontools.core.extract"),
    "ntff": Listed("Look into a profile capture (NTFF), and compare it with the emulator."),
    "ntff info": Listed("Show what a capture holds: chip, streams, memory, records.", "neurontools.ntff.info"),
    "ntff disasm": Listed("List the instructions that the runtime had loaded.", "neurontools.ntff.disasm"),
    "ntff timeline": Listed("Show where the time went, beside the emulator's run.", "neurontools.ntff.timeline"),
    "ntff compare": Listed(
        "Compare a capture with the emulator's run of its NEFF, word by word and transfer by transfer.",
        "neurontools.ntff.compare",
    ),
    "ntff export": Listed("Write a capture for Perfetto, Chrome's viewer, or as CSV.", "neurontools.ntff.export"),
    "err": Listed("Explain the errors of the Neuron runtime, driver and compiler."),
    "err explain": Listed("Explain an error code, a name, a log line or a whole log.", "neurontools.err.explain"),
    "reference": Listed("Show the facts behind a cite, with their public sources.", "neurontools.reference.command"),
    "schema": Listed("Print the JSON Schema of a command's documents.", "neurontools.command.schema"),
    "hlo": Listed("Look into an HLO module, check it, compare, order its collectives."),
    "hlo diff": Listed("Compare what two modules compute.", "neurontools.hlo.diff"),
    "hlo flops": Listed("Count the arithmetic and the bytes of a module.", "neurontools.hlo.flops"),
    "hlo show": Listed("Show a module as HLO text.", "neurontools.hlo.show"),
    "hlo stats": Listed("Count the instructions of a module by opcode and type.", "neurontools.hlo.stats"),
    "hlo tokens": Listed("Put the collectives of a module in a total order by tokens."),
    "hlo tokens add": Listed("Thread tokens through the collectives of a module.", "neurontools.hlo.tokens.add"),
    "hlo tokens check": Listed(
        "Prove that the collectives of each stream stand in a total order.",
        "neurontools.hlo.tokens.check",
    ),
    "hlo tokens strip": Listed("Take the tokens of the collectives out of a module.", "neurontools.hlo.tokens.strip"),
    "hlo verify": Listed("Check that a module is whole and keeps the rules of shapes.", "neurontools.hlo.verify"),
    "selftest": Listed("Run public test suites of operations against this toolkit, and report by group."),
    "selftest jax": Listed("Run JAX's primitive harnesses, and compare with XLA on a CPU.", "neurontools.selftest.jax"),
    "selftest onnx": Listed(
        "Run ONNX's node tests, and compare with their expected outputs.",
        "neurontools.selftest.onnx",
    ),
    "shim": Listed("Write stand-ins for parts of the Neuron SDK into a folder.", "neurontools.shim.command"),
    "mem": Listed("Say what takes device memory, whether models fit together, and why not."),
    "mem explain": Listed("Explain a report of device memory from a log of the runtime.", "neurontools.memory.explain"),
    "mem neff": Listed("Show what device memory a NEFF takes, category by category.", "neurontools.memory.neff"),
    "mem plan": Listed("Say whether models and tensors fit on an instance together.", "neurontools.memory.plan"),
    "mem scratchpad": Listed(
        "Show what each scratchpad page size costs models that are loaded together.",
        "neurontools.memory.scratchpad",
    ),
    "mem watch": Listed("Show the device memory of running sessions as it changes.", "neurontools.memory.watch"),
    "doctor": Listed("Check the environment of a workload against everything that Neuron documents."),
    "doctor env": Listed(
        "Check environment variables against everything that is documented of them.",
        "neurontools.doctor.env",
        default=True,
    ),
    "doctor numa": Listed(
        "Show which CPUs are near which cores, and which to keep for the runtime.",
        "neurontools.doctor.numa",
    ),
    "doctor pipeline": Listed("Show how throughput depends on the depth of the queue.", "neurontools.doctor.pipeline"),
    "ls": Listed("List the Neuron devices of an instance, as neuron-ls does.", "neurontools.system.ls"),
    "monitor": Listed("Metrics as neuron-monitor streams them: make, check, sum up and compare them."),
    "monitor diff": Listed("Compare two streams of reports of neuron-monitor.", "neurontools.monitor.diff"),
    "monitor run": Listed(
        "Stream metrics of emulated sessions as neuron-monitor does.",
        "neurontools.monitor.run",
        default=True,
    ),
    "monitor summarize": Listed(
        "Sum up a stream of reports of neuron-monitor, real or emulated.",
        "neurontools.monitor.summarize",
    ),
    "monitor validate": Listed(
        "Check reports of neuron-monitor against the documentation.",
        "neurontools.monitor.validate",
    ),
    "sysfs": Listed("The Neuron driver's counters: make a tree of them, read, watch and clear one, real or made."),
    "sysfs clear": Listed("Set counters of the Neuron driver to zero.", "neurontools.sysfs.clear"),
    "sysfs mount": Listed(
        "Make the driver's tree of files from emulated sessions, and keep it up to date.",
        "neurontools.sysfs.mount",
    ),
    "sysfs read": Listed(
        "Show attributes of the Neuron driver, of a real machine or of a tree that was made.",
        "neurontools.sysfs.read",
    ),
    "sysfs watch": Listed("Show attributes of the Neuron driver as they change.", "neurontools.sysfs.watch"),
    "sysfs datastore": Listed("Show the counters in a data store of the Neuron driver.", "neurontools.sysfs.datastore"),
    "top": Listed(
        "Show cores, CPUs and memory of running programs on a dashboard, as neuron-top.",
        "neurontools.top.command",
    ),
    "hbm": Listed("Where tensors lie, and what it costs to move them between host and device."),
    "hbm trace": Listed(
        "Trace where tensors of a chain of models lie, and what crosses PCIe.",
        "neurontools.hbm.trace",
    ),
    "dbgstream": Listed("Tensors that programs print, as events of a debug stream: record, decode, follow."),
    "dbgstream decode": Listed("Show the events in a file of a debug stream.", "neurontools.dbgstream.decode"),
    "dbgstream record": Listed(
        "Run a program on the emulator, and write what it prints as a debug stream.",
        "neurontools.dbgstream.record",
    ),
    "dbgstream tail": Listed(
        "Show the events of a debug stream as they are written to a file.",
        "neurontools.dbgstream.tail",
    ),
    "arch": Listed("Show instances, chips and links, and how they are wired."),
    "arch cycles": Listed(
        "Find edge-disjoint Hamiltonian cycles of an instance and prove them.",
        "neurontools.arch.cycles",
    ),
    "arch diff": Listed("Compare two chips or instances, figure by figure.", "neurontools.arch.diff"),
    "arch path": Listed("Show the way of bytes between two chips or ranks.", "neurontools.arch.path"),
    "arch show": Listed(
        "Show what an instance or a chip is made of; without a name, list the instance types.",
        "neurontools.arch.show",
    ),
    "arch topo": Listed("Draw how the chips of an instance are wired.", "neurontools.arch.topo"),
    "cc": Listed("Plan, run, check, benchmark and break collective operations on emulated machines."),
    "cc bench": Listed(
        "Time a collective over many sizes, with the options and columns of nccom-test.",
        "neurontools.cc.bench",
    ),
    "cc bench-parse": Listed(
        "Compare real output of nccom-test with the model, row by row.",
        "neurontools.cc.bench_parse",
    ),
    "cc fault": Listed(
        "Break a collective on purpose: stop a rank, slow a link, lose a transfer.",
        "neurontools.cc.fault",
    ),
    "cc groups": Listed("Check replica groups of collective operations."),
    "cc groups check": Listed(
        "Check replica groups, or the pairs of a permute, and list the algorithms they allow.",
        "neurontools.cc.groups.check",
    ),
    "cc plan": Listed(
        "Show which algorithm a collective takes, its steps and traffic, and its time.",
        "neurontools.cc.plan",
    ),
    "cc run": Listed("Execute a collective on emulated ranks, with data.", "neurontools.cc.run"),
    "cc verify": Listed(
        "Execute a collective and compare every rank with NumPy, bit for bit.",
        "neurontools.cc.verify",
    ),
    "cc schedule": Listed(
        "Run collectives that ranks call in their own order, and explain deadlocks among them.",
        "neurontools.cc.schedule",
    ),
    "memh": Listed("Show the memory hierarchy, and what a program does with it."),
    "memh budget": Listed(
        "Show how much of SBUF and PSUM a program needs, and what goes through HBM and back.",
        "neurontools.memh.budget",
    ),
    "memh lint": Listed("Find accesses that break the rules of a memory, and slow ones.", "neurontools.memh.lint"),
    "memh map": Listed("Show what a partition of SBUF or PSUM holds when a program ends.", "neurontools.memh.map"),
    "memh roofline": Listed("Show what bounds a core: operations, or bytes of HBM.", "neurontools.memh.roofline"),
    "memh show": Listed("Show the memories of a core: sizes, rates, form, who reaches them.", "neurontools.memh.show"),
    "overlap": Listed("Show how compute and collectives share the DMA engines."),
    "overlap report": Listed(
        "Show of each collective what compute hides and what is exposed, and what the next matmul waits for.",
        "neurontools.overlap.report",
    ),
    "overlap whatif": Listed(
        "Show what packet sizes, streams and earlier collectives do to compute and collectives that share DMA engines.",
        "neurontools.overlap.whatif",
    ),
    "dap": Listed("Serve the debugger to an editor, by the Debug Adapter Protocol.", "neurontools.dap.command"),
    "tune": Listed(
        "Find the fastest right variant of a script's kernels, by emulated time, without a device.",
        "neurontools.tuning.tune_command",
    ),
    "batch": Listed("Run, check and profile many programs, side by side.", "neurontools.tuning.batch_command"),
    "compile": Listed("Compile graphs of HLO to NEFFs, explain error codes, list operations."),
    "compile cache": Listed("List, check and clean the modules that a compile cache keeps."),
    "compile cache gc": Listed(
        "List what a compile cache need not keep; remove it with --delete.",
        "neurontools.compiler.cache_commands.gc",
    ),
    "compile cache ls": Listed(
        "List the modules that a compile cache keeps.",
        "neurontools.compiler.cache_commands.ls",
    ),
    "compile cache verify": Listed(
        "Check that every entry of a compile cache is whole.",
        "neurontools.compiler.cache_commands.verify",
    ),
    "compile explain": Listed(
        "Say what an error code of the compiler means and what to do about it.",
        "neurontools.compiler.explain",
    ),
    "compile list-operators": Listed("List the operations that are compiled.", "neurontools.compiler.list_operators"),
    "compile model": Listed(
        "Compile an HLO module to a NEFF; the word `model` may be left out.",
        "neurontools.compiler.command",
        default=True,
    ),
    "compile diff": Listed(
        "Compare two compilations of a graph: passes, operations, instructions, bytes, time.",
        "neurontools.compiler.diff_command",
    ),
    "compile report": Listed(
        "Show what a compiled graph costs: casts, operations, instructions, bytes, time, the critical path.",
        "neurontools.compiler.report_command",
    ),
    "compile map": Listed(
        "Show which operation became which instructions, and which source line it comes from.",
        "neurontools.compiler.map_command",
    ),
}
