"""Runs a pipeline over many rows: a folder, JSONL, CSV or Parquet in, JSONL or Parquet out, resumable at any moment."""
