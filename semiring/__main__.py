"""The entry point of ``python -m semiring``."""

import sys

from semiring.cli import main

if __name__ == "__main__":
    sys.exit(main())
