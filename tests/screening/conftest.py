"""What screening itself gets wrong, and goes on behind, fails its tests."""

from tests.mending.conftest import unexpected

__all__ = ["unexpected"]
