"""A client in any language, judged by what it sends to a scripted broker.

    stage.py     a case: its address, its document, its rule; what it works with: a broker of its own, the
                 client's tasks, checks
    wire.py      the relay between the two: what is sent, and how answers are changed
    run.py       all of a run
    recovery.py  plays that many cases share
    framing.py   frames, versions, tagged fields
    records.py   producing and consuming
    offsets.py   committed offsets
    transactions.py     transactional producers
    classic_groups.py   members of classic groups
    consumer_groups.py  members of KIP-848's groups

A client is a process that gets tasks, a line of JSON each; the first is `{"do": "name"}`:

    {"do": "consume", "topic", "records", "commit", "seconds", "settings"}
    {"do": "produce", "topic", "partition", "values", "seconds", "settings"}
    {"do": "transact", …as produce…, "group", "offset", "end"}

and reports on each at its end: `{"values": […]}`, `{"sent": 2}`, `{"error": "…"}` where it gave up, or
`{"lacks": "what"}`. Rules: settings have the names of Kafka's clients. Apache Kafka's own client passes every
case, or the case is wrong.
"""
