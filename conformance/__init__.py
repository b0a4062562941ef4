"""Files that judge a codec of Kafka's protocol in any language: `python -m conformance` makes them.

Strategy: the inputs are made here (`hostile`), from coordwire's layouts; every expected answer is made by
Apache Kafka's own classes (`judge`), never by coordwire; `archive` writes both as the files that README.md
describes to implementers, with a manifest. What is kept in `data` is the same archive, each file compressed.

Rules: an id is an address and never changes its meaning; what a vector says depends on nothing but this
code and the release that judges.
"""
