"""What can go wrong with a worker.

WorkerError
├── BrokerError    the broker can't be reached, or a topic is not there
└── DrainTimeout   messages in flight did not end in the time allowed; they will be delivered again
"""


class WorkerError(Exception):
    """The worker can't go on."""


class BrokerError(WorkerError):
    """The broker can't be reached, or refuses what the worker needs."""


class DrainTimeout(WorkerError):
    """Messages in flight did not end in the time allowed."""
