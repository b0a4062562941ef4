"""Faults on demand: rules that change what a broker does with requests, and moves of leaders and nodes.

    subjects.py          what a request is about, and where responses have error codes
    refused_answers.py   error codes in responses, where Kafka puts them
    fault_rule.py        FaultRule: conditions and effects of a fault, in Python or as text
    lawful_rules.py      faults that every client has to live with, drawn by seed
    fault_registry.py    the rules of a broker, with a handle for each
    faulted_call.py      one request that rules take
    cluster_moves.py     leaders, coordinators and nodes that move, log directories that fail
    waits.py             results that are waited for, in threads and in coroutines

Rules: a broker without rules does not run this code. Everything may be called from any thread.
"""

from coordwire.broker.injection.fault_registry import FaultHandle, FaultNotReached, Faults
from coordwire.broker.injection.fault_rule import FaultRule, FaultyRule, Incoming, parse_fault
from coordwire.broker.injection.waits import Settled

__all__ = [
    "FaultHandle",
    "FaultNotReached",
    "FaultRule",
    "Faults",
    "FaultyRule",
    "Incoming",
    "Settled",
    "parse_fault",
]
