"""The corpus is a package of its own: Triton's interpreter imports it too, in a process without pytest."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
