"""`python -m neurontools`."""

import sys

from neurontools.cli import main

sys.exit(main())
