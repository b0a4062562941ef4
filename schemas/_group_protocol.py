"""What the members of a classic group say to each other in opaque bytes, by the group's protocol type.

The coordinator passes these bytes on; a protocol type of somebody else's stays bytes.
"""

from schemas.assignors.connect_protocol import ConnectProtocolAssignment, ConnectProtocolSubscription
from schemas.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from schemas.vocabulary import Embedded

MemberSubscription = Embedded(
    {"consumer": ConsumerProtocolSubscription, "connect": ConnectProtocolSubscription}
)
MemberAssignment = Embedded({"consumer": ConsumerProtocolAssignment, "connect": ConnectProtocolAssignment})
