"""``python -m meshwright.cli``."""

from __future__ import annotations

import sys

from meshwright.cli import main

sys.exit(main())
