"""TODO"""

from schemas.vocabulary import Classic, Data, Default, Int16, Int32, Nullable, Since, String

RequestHeader = Data("RequestHeader", versions=(0, 2), flexible=2, direction="header", about="TODO")(
    "request_api_key"     / Int16                                            * "TODO",
    "request_api_version" / Int16                                            * "TODO",
    "correlation_id"      / Int32                                            * "TODO",
    "client_id"           / Since(1, Classic(Default(Nullable(String), ""))) * "TODO",
)

ResponseHeader = Data("ResponseHeader", versions=(0, 1), flexible=1, direction="header", about="TODO")(
    "correlation_id" / Int32 * "TODO",
)
