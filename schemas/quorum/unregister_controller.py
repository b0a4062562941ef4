"""UnregisterController: an admin removes a controller that will not come back."""

from schemas.vocabulary import Api, Default, ErrorCode, Int32, Nullable, String

UnregisterController = Api(
    94, "UnregisterController", versions=(0, 0), flexible=0, listeners=("broker", "controller"), modifies=True,
    doc="Takes a controller's registration out of the metadata. One that still runs can register again.",
    changes={},
    errors=(
        "REQUEST_TIMED_OUT", "CLUSTER_AUTHORIZATION_FAILED", "NOT_CONTROLLER", "UNSUPPORTED_VERSION",
        "CONTROLLER_ID_NOT_REGISTERED",
    ),
)

UnregisterControllerRequest = UnregisterController.request(
    "controller_id" / Int32 * "Node id of the controller to remove.",
)

UnregisterControllerResponse = UnregisterController.response(
    "throttle_time_ms" / Int32                         * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                     * "0, or why the controller is still registered.",
    "error_message"    / Default(Nullable(String), "") * "Explains the error; null or empty for none.",
)
