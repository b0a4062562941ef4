"""A broker, judged by cases over the network.

    stage.py             a case: its address, its document, its rule; what it works with: clients, names,
                         topics, checks; it removes what it made
    run.py               all of a run
    framing.py           frames and versions
    frames.py            frames whose content is wrong, and SASL where there is none
    authentication.py    SASL: handshakes, wrong passwords, sessions that end
    classic_groups.py    groups of the classic protocol
    classic_rules.py     what they refuse, and how they are listed and deleted
    classic_members.py   the classic protocol in each version, static members, who leaves
    group_lists.py       coordinators found; groups described, listed, deleted
    consumer_groups.py   groups of KIP-848
    consumer_members.py  their subscriptions, assignors, static members, both protocols together
    share_groups.py      share groups: members, descriptions, offsets
    share_records.py     what they are delivered
    streams_groups.py    streams groups
    offsets.py           committed offsets
    offset_rules.py      them in each version; who may commit and fetch what; what ends them
    transactions.py      producers and transactions
    transaction_rules.py them in each version; who is fenced, what is refused
    producers.py         sequences; producers and transactions described and listed
    records.py           Produce, Fetch and its sessions
    partitions.py        a partition's ends: offsets by time, deleted records, leader epochs
    topics.py            topics and configs

Rules: a case checks a rule, not bytes: ids, times and texts differ between brokers. It has names of its own,
with a random prefix, and touches nothing else. Apache Kafka 4.3 and 4.4 pass every case,
and 3.9 those of its versions.
"""
