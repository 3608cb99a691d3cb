"""Prometheus rules and a Grafana dashboard for a pipeline."""
