"""Runs a pipeline on the messages of a Kafka topic: results to another topic, what can't be done to a third."""
