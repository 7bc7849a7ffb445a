"""`python -m mpstui` is `mpstui`."""

import sys

from .cli.main import main

sys.exit(main())
