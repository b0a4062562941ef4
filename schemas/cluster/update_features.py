"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Int8,
    Int16,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    Until,
)

UpdateFeatures = Api(
    57, "UpdateFeatures", versions=(0, 2), flexible=0,
    about="TODO",
    changes={},
)

FeatureUpdateKey = Struct(
    "feature"           / String                     * "TODO",
    "max_version_level" / Int16                      * "TODO",
    "allow_downgrade"   / Until(0, Boolean)          * "TODO",
    "upgrade_type"      / Since(1, Default(Int8, 1)) * "TODO",
    about="TODO",
)

UpdateFeaturesRequest = UpdateFeatures.request(
    "timeout_ms"      / Default(Int32, 60_000)  * "TODO",
    "feature_updates" / Array(FeatureUpdateKey) * "TODO",
    "validate_only"   / Since(1, Boolean)       * "TODO",
)

UpdatableFeatureResult = Struct(
    "feature"       / String                        * "TODO",
    "error_code"    / Int16                         * "TODO",
    "error_message" / Default(Nullable(String), "") * "TODO",
    about="TODO",
)

UpdateFeaturesResponse = UpdateFeatures.response(
    "throttle_time_ms" / Int32                                                   * "TODO",
    "error_code"       / Int16                                                   * "TODO",
    "error_message"    / Default(Nullable(String), "")                           * "TODO",
    "results"          / Until(1, Array(UpdatableFeatureResult), ignorable=True) * "TODO",
)
