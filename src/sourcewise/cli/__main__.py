"""``python -m sourcewise.cli``: the command where no script was installed."""

import sys

from sourcewise.cli.entry import main

sys.exit(main())
