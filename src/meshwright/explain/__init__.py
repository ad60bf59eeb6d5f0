"""Why this plan: what a user sees of a result, first as data, then rendered."""
