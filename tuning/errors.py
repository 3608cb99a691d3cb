"""What can go wrong when a pipeline is tuned or a fleet is planned.

TuningError    a server, a measurement or an input can't be used as given
"""


class TuningError(Exception):
    """In four parts: where, what was found, what is needed, what to do."""

    def __init__(self, where: str, found: str, expected: str, fix: str) -> None:
        super().__init__(f"{where}: {found}; {expected}. {fix}.")
        self.where, self.found, self.expected, self.fix = where, found, expected, fix
