"""What a strategy costs in time and memory."""

from __future__ import annotations
