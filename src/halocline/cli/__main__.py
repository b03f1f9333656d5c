"""`python -m halocline.cli` is the `halocline` command."""

import sys

from halocline.cli import main

sys.exit(main())
