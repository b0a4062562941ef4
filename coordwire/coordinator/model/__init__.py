"""What a shard keeps: groups, members, committed offsets. Nothing here decides when something happens."""
