"""One target, guided by coverage: atheris (extra `fuzz`) keeps inputs that reach new code and changes those further.

Run as a process of its own: `python -m tests.fuzz.guided TARGET SECONDS FOLDER [SEED]`.  libFuzzer ends the process,
so what was found is written below FOLDER as it comes: `inputs`, a number, and `crashes`, one file a class.
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

__all__ = ["guided"]

_EVERY = 100  # inputs between two notes of how many there were


def guided(name: str, seconds: int, folder: Path, seed: int) -> None:
    """Fuzz a target until its time is over.  Does not return: libFuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["formats", "emulator", "neurontools"], enable_loader_override=False):
        from tests.fuzz.driver import Found, store
        from tests.fuzz.mutation import mutated, mutated_text
        from tests.fuzz.oracles import tried
        from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    seeds = target.seeds()
    corpus = folder / "corpus"
    corpus.mkdir(parents=True)
    for number, data in enumerate(seeds):
        (corpus / f"{number}").write_bytes(data)
    count, known, until = 0, set[str](), time.monotonic() + seconds

    def one(data: bytes) -> None:
        nonlocal count
        count += 1
        over = time.monotonic() > until
        if over or count % _EVERY == 0:
            (folder / "inputs").write_text(str(count))
        if over:  # libFuzzer looks at its own clock only after inputs that reach nothing new
            os._exit(0)
        crash = tried(target.run, data)
        if crash is not None and crash.kind not in known:
            known.add(crash.kind)
            store(folder / "crashes", name, Found(crash, data), lambda text: print(text, flush=True))

    def change(data: bytes, most: int, chance_seed: int) -> bytes:
        """Change an input as our own fuzzer does, or as libFuzzer does, which knows what comparisons looked for."""
        chance = random.Random(chance_seed)
        if chance.random() < 0.5:
            return bytes(atheris.Mutate(data, most))
        if target.text:
            texts = data.decode("utf-8", "replace"), chance.choice(seeds).decode("utf-8", "replace")
            return mutated_text(texts[0], texts[1:], chance).encode("utf-8", "replace")[:most]
        return mutated(data, seeds, chance)[:most]

    longest = max(map(len, seeds))
    options = [f"-seed={seed}", f"-max_len={2 * longest}", "-timeout=0", "-rss_limit_mb=0",
               "-verbosity=0", "-print_final_stats=0"]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], one, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    guided(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1)
