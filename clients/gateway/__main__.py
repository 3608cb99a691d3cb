"""`python -m clients.gateway` is `tritonkit gateway`."""

import typer

from clients.gateway.command import gateway

if __name__ == "__main__":
    typer.run(gateway)
