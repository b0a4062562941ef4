"""The Apache Kafka wire protocol, typed and exact."""
