"""The Apache Kafka wire protocol, typed and exact."""
from coordwire.errors import *
from coordwire.messages import find_message
