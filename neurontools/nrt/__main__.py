"""`python -m neurontools.nrt`: print the folder that makes `import nrtpy` this package, for PYTHONPATH."""

from pathlib import Path

print(Path(__file__).resolve().parents[1] / "nki_path")
