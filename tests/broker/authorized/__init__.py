"""What a user gets of each API with several sets of ACLs, from a real Kafka broker and from this one."""
