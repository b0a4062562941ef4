"""The data of a shard: groups, members, committed offsets. Nothing here decides when something happens."""
