"""A codec in any language, judged with the vectors of the archive.

    verdicts.py   the archive's files; an answer against what Apache Kafka said
    run.py        all of a run

The codec is a process that is asked by lines of JSON. A request is `{"do": "read", "api_key", "api",
"direction", "version", "hex"}`, or "write" with "json" instead of "hex"; the first is `{"do": "name"}`. An
answer is one of

    {"name": "…"}                 to the first: the codec with its version
    {"hex": "…", "json": {…}}     read, and written again; either or both may be missing
    {"refused": "why"}            an error of the codec's own
    {"lacks": "what"}             an API, a version or a direction that it does not have
"""
