"""Settings, of brokers as they start and of topics, groups and brokers as they run.

broker_config.py      BrokerConfig: the settings of a broker at its start
settings.py           settings by their Kafka names, with types, defaults, bounds and descriptions
offered_versions.py   the answers to ApiVersions
released_versions.py  the versions of APIs that releases of Kafka offer, and features
"""
