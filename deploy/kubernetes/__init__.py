"""Kubernetes objects for a pipeline: a Kustomize base, and what it may be scaled with."""
