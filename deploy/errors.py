"""What can go wrong with a deployment.

DeployError      it can't be generated, or can't be run, as asked
"""


class DeployError(Exception):
    """The deployment can't be made as asked."""
