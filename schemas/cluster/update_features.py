"""UpdateFeatures: raises or lowers the feature levels that the whole cluster runs at (KIP-584)."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    ErrorCode,
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
    57, "UpdateFeatures", versions=(0, 2), flexible=0, listeners=("broker", "controller"),
    answered_by="controller", modifies=("validate_only", False),
    doc="Fixes levels such as metadata.version once all nodes support them. New message and record formats come into use only then.",
    changes={
        1: "Downgrades are safe or unsafe, and a change can be tried without effect (KIP-778).",
        2: "All changes succeed or fail together, so there are no single results.",
    },
    errors=(
        "CLUSTER_AUTHORIZATION_FAILED", "NOT_CONTROLLER", "INVALID_REQUEST", "INVALID_UPDATE_VERSION",
        "FEATURE_UPDATE_FAILED",
    ),
)

FeatureUpdateKey = Struct(
    "feature"           / String                     * "The feature's name, such as metadata.version.",
    "max_version_level" / Int16                      * "The level to run at; 0 switches the feature off.",
    "allow_downgrade"   / Until(0, Boolean)          * "True: the level may be lowered (v0).",
    "upgrade_type"      / Since(1, Default(Int8, 1)) * "1 raise, 2 lower without loss, 3 lower even if metadata is lost (KIP-778).",
    doc="The change to one feature.",
)

UpdateFeaturesRequest = UpdateFeatures.request(
    "timeout_ms"      / Default(Int32, 60_000)  * "How long the controller may take, in ms.",
    "feature_updates" / Array(FeatureUpdateKey) * "The changes.",
    "validate_only"   / Since(1, Boolean)       * "True: only check the request, change nothing (KIP-778).",
)

UpdatableFeatureResult = Struct(
    "feature"       / String                        * "The feature's name.",
    "error_code"    / ErrorCode                     * "0, or why its level was not changed.",
    "error_message" / Default(Nullable(String), "") * "More about the error; null or empty for none.",
    doc="What became of one feature's change.",
)

UpdateFeaturesResponse = UpdateFeatures.response(
    "throttle_time_ms" / Int32                                                   * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                                               * "0, or why nothing was changed.",
    "error_message"    / Default(Nullable(String), "")                           * "More about the error; null or empty for none.",
    "results"          / Until(1, Array(UpdatableFeatureResult), ignorable=True) * "One outcome for each feature (v0-1).",
)
