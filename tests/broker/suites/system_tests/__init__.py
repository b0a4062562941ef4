"""Apache Kafka's system tests of groups and transactions, with our brokers in the place of Kafka's.

    suite.py     which tests are run, and what each came to
    nodes.py     ducktape's cluster: each node a namespace of processes and files on this machine
    service.py   kafkatest's KafkaService with the nodes of one broker of ours

Rule: nodes.py and service.py are imported by ducktape, in an environment that has it; suite.py starts that.
"""
