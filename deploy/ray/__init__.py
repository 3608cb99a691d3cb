"""Pipelines on Ray Serve: each replica owns a Triton server."""
