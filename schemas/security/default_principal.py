"""DefaultPrincipalData: who a forwarded request comes from, as bytes inside an Envelope."""

from schemas.vocabulary import Boolean, Data, String

DefaultPrincipalData = Data("DefaultPrincipalData", versions=(0, 0), flexible=0, doc="The principal that a broker authenticated, for the controller (KIP-590).")(
    "type"                / String  * 'The kind of principal, usually "User".',
    "name"                / String  * "Whom the broker authenticated.",
    "token_authenticated" / Boolean * "True if a delegation token proved it.",
)
