"""What the tables do not say by themselves: causes, per scenario. Numbers are left to the tables."""

REMARKS: dict[str, str] = {}
