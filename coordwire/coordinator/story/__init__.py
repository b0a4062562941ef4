"""What a shard reports of itself: events in the words of `coordwire.group_events`, once they are durable.

story.py           holds facts back until the log has what they rest on, and drops those that are reverted
classic_story.py   facts that operations note of classic groups, to events
consumer_story.py  durable records of consumer groups, to events
commit_story.py    durable records of commits, and the ends of transactions, to events
rebalances.py      the rebalances that are under way
"""
