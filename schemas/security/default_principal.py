"""TODO"""

from schemas.vocabulary import Boolean, Data, String

DefaultPrincipalData = Data("DefaultPrincipalData", versions=(0, 0), flexible=0, about="TODO")(
    "type"                / String  * "TODO",
    "name"                / String  * "TODO",
    "token_authenticated" / Boolean * "TODO",
)
