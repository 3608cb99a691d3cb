"""What can go wrong with a batch.

BatchError
├── InputError       the rows can't be read
├── OutputError      the results can't be written where they should go
├── RowError         one row can't be done; it goes to the side file, the others go on
├── OfflineError     the models can't run in this process
└── ServerLost       the server stopped answering for too long; run the same command again to go on
"""


class BatchError(Exception):
    """The batch can't do what was asked."""


class InputError(BatchError):
    """The rows can't be read."""


class OutputError(BatchError):
    """The results can't be written where they should go."""


class RowError(BatchError):
    """One row can't be done; the text is the reason."""


class OfflineError(BatchError):
    """The models can't run in this process."""


class ServerLost(BatchError):
    """The server stopped answering for too long."""
