"""Corner cases: odd requests and requests out of order, answered by a real Kafka broker and by this one.

    script.py        a case and its steps
    cases/           the cases, by what they are about
    normal_form.py   an answer without what differs from run to run
    runner.py        cases sent over sockets, and what came back
    brokers.py       the brokers that are compared
    differences.py   where two brokers' outcomes differ
    kept.py          what is kept in tests/data/corners: Kafka's answers, and why ours differ
    values.py        batches and ids that the cases send

`python -m tests.broker.corners record` writes Kafka's answers again, `compare` prints where ours differ.
"""
