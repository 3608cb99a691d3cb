"""What can go wrong when a server is called, as one tree.

    ClientError
    ├── EndpointError      the address can't be used, or this way of calling can't do what was asked
    ├── Unreachable        nobody answers at the address
    ├── NotReady           the server answers, but the model isn't loaded
    ├── RequestTimeout     no answer, or no next part of it, within timeout_s
    ├── RequestRejected    the server refused the request or failed on it; its own words are kept
    ├── ArrayError         a value can't be sent as the tensor it is meant for
    └── StreamBroken       the connection or the answer ended before the answer was complete

Each says where it happened, what was found, what is expected, and what to do.
"""


class ClientError(Exception):
    """Base of every error that a client raises."""

    def __init__(self, where: str, found: str, expected: str = "", advice: str = "") -> None:
        # All four go to Exception too, so that the error survives pickling (Ray, multiprocessing).
        super().__init__(where, found, expected, advice)
        self.where = where
        self.found = found
        self.expected = expected
        self.advice = advice

    def __str__(self) -> str:
        facts = "; ".join(part for part in (self.found, self.expected) if part)
        sentence = f"{self.where}: {facts}"
        return f"{sentence.rstrip('.')}. {self.advice}" if self.advice else sentence


class EndpointError(ClientError):
    """The address can't be used, or the transport behind it can't do what was asked; says which one can."""


class Unreachable(ClientError):
    """Nobody answers at the address."""


class NotReady(ClientError):
    """The server answers, but the model isn't there or isn't loaded."""


class RequestTimeout(ClientError):
    """No answer, or no next part of a streamed answer, within the time given."""


class RequestRejected(ClientError):
    """The server refused the request or failed on it; `found` holds the server's own words."""


class ArrayError(ClientError):
    """A value can't be sent as the tensor it is meant for."""


class StreamBroken(ClientError):
    """A streamed answer ended before it was complete."""
