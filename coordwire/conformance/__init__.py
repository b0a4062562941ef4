"""What judges implementations of Kafka's protocol in any language: cases with addresses, verdicts, reports.

    cases.py     what cases of brokers and of clients share
    results.py   a case's result and its verdict; lists of known failures; which cases are run
    reports.py   results as a summary, as JSON and as JUnit's XML
    matrix.py    results of several implementations as a page
    process.py   an implementation as a process that is asked by lines
    codec/       a reader and writer of messages
    broker/      a broker, asked over the network
    client/      a client, by what it sends to a scripted broker

Rules: what is judged is untrusted: every wait has a limit, and what it says is bounded and escaped. A case is
wrong if Apache Kafka fails it.
"""
