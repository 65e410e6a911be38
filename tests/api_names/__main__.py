"""Write docs/nki-support.md."""

from tests.api_names.support import main

main()
