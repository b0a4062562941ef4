"""Apache Kafka itself as the judge: its generated classes and its definitions, fetched from Maven Central."""
