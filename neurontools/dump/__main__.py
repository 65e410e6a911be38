"""Run the collector: `python -m neurontools.dump`."""

from __future__ import annotations

import sys

from neurontools.dump.program import main

sys.exit(main())
