"""What can go wrong when load is made.

    ClientError (of clients)
    └── LoadError      the plan, its inputs or its limits can't be used as given

A request that fails is no error of the load: it is what the load found, and is counted (outcomes.py).
"""

from clients.errors import ClientError


class LoadError(ClientError):
    """The plan, its inputs or its limits can't be used as given."""
