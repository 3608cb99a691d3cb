"""What can go wrong when load is made.

    ClientError (of clients)
    └── LoadError         the plan, its inputs or its limits can't be used as given
        └── WrongOption   the text of an option is none of its kind

A request that fails is no error of the load: it is what the load found, and is counted (outcomes.py).
"""

from clients.errors import ClientError


class LoadError(ClientError):
    """The plan, its inputs or its limits can't be used as given."""


class WrongOption(LoadError):
    """The text of an option is none of its kind: wrong usage, told before anything begins."""
