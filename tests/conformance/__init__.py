"""What several engines, and Apache Kafka, say of the same values and bytes."""
