//! Names that are part of the API: annotations, finalizers, conditions, reasons. Documented in docs/operations.md.

/// Prefix of every annotation, label, finalizer and condition of ours.
pub const PREFIX: &str = "custody.dev/";

/// Asks to take an owner over: a place, an owner id, or `none`.
pub const TAKE_OVER: &str = "custody.dev/take-over";
/// Confirms the removal of more than half of an owner's resources: the generation it was asked for.
pub const CONFIRM_REMOVAL: &str = "custody.dev/confirm-removal";
/// Asks to take an object over from a provider that still holds its finalizer: the provider's name.
pub const ADOPT_FROM: &str = "custody.dev/adopt-from";
/// Says from which provider an object was taken over; put on in place of [`ADOPT_FROM`] when the finalizers were swapped.
pub const ADOPTED_FROM: &str = "custody.dev/adopted-from";
/// Cluster API: do not touch this object.
pub const PAUSED: &str = "cluster.x-k8s.io/paused";
/// Cluster API: which Cluster the object belongs to.
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// Cluster API: only objects with this label value are served by a controller started with --watch-filter.
pub const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";
/// Cluster API: the object is managed by somebody else, who is named.
pub const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";
/// clusterctl: the source object of a move, about to be removed here and to live on elsewhere.
pub const DELETE_FOR_MOVE: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";

/// Annotation that carries the owner id of one controller.
pub fn owner_id(controller: &str) -> String {
    format!("{PREFIX}{controller}-owner")
}
/// Annotation that carries the ledger of one controller.
pub fn ledger(controller: &str) -> String {
    format!("{PREFIX}{controller}-ledger")
}
/// Finalizer of one controller.
pub fn finalizer(controller: &str) -> String {
    format!("{PREFIX}{controller}")
}
/// Condition that mirrors owner id, seq and records of one controller into status.
pub fn ledger_condition(controller: &str) -> String {
    format!("{PREFIX}{controller}-ledger")
}

/// Reasons of conditions and events. Closed set: they are metric labels too.
pub mod reason {
    /// All pieces are there and as wanted.
    pub const RECONCILED: &str = "Reconciled";
    /// Work is going on.
    pub const PROGRESSING: &str = "Progressing";
    /// Being taken down.
    pub const DELETING: &str = "Deleting";
    /// Paused by annotation or by its Cluster.
    pub const PAUSED: &str = "Paused";
    /// A thing with the same natural key exists and carries no mark.
    pub const EXISTS_UNOWNED: &str = "ExistsUnowned";
    /// A thing in our slot carries somebody else's mark, or ours from another place.
    pub const OWNERSHIP_CONFLICT: &str = "OwnershipConflict";
    /// What was referenced or adopted for release is gone.
    pub const REFERENCE_LOST: &str = "ReferenceLost";
    /// A created thing is gone and its piece does not want it back.
    pub const RESOURCE_LOST: &str = "ResourceLost";
    /// The cloud says the thing failed.
    pub const RESOURCE_FAILED: &str = "ResourceFailed";
    /// The owner was moved, restored or copied here.
    pub const TAKEOVER_REQUIRED: &str = "TakeoverRequired";
    /// The credentials see another account, project or region than the ledger.
    pub const IDENTITY_MISMATCH: &str = "IdentityMismatch";
    /// Another provider's finalizer is on the object.
    pub const PEER_CONTROLLER: &str = "PeerController";
    /// The object is marked as the source of a move.
    pub const MOVE_UNFINISHED: &str = "MoveUnfinished";
    /// The ledger annotation cannot be read.
    pub const LEDGER_UNREADABLE: &str = "LedgerUnreadable";
    /// The ledger was written by a newer version.
    pub const LEDGER_TOO_NEW: &str = "LedgerTooNew";
    /// The owner id annotation cannot be read.
    pub const OWNER_ID_INVALID: &str = "OwnerIdInvalid";
    /// The ledger would grow over its limit.
    pub const LEDGER_FULL: &str = "LedgerFull";
    /// The ledger was gone or rolled back and is being refilled from the marks.
    pub const LEDGER_REBUILT: &str = "LedgerRebuilt";
    /// A second thing in one slot was removed.
    pub const DUPLICATE_REMOVED: &str = "DuplicateRemoved";
    /// A spec edit would remove more than half of the owner's things.
    pub const REMOVAL_NEEDS_CONFIRMATION: &str = "RemovalNeedsConfirmation";
    /// The cloud refuses for lack of a permission.
    pub const PERMISSION_DENIED: &str = "PermissionDenied";
    /// The cloud refuses the request as it is.
    pub const INVALID_REQUEST: &str = "InvalidRequest";
    /// The cloud or the API server cannot be reached, or answers with an error that passes.
    pub const UNAVAILABLE: &str = "Unavailable";
    /// The cloud asks to slow down.
    pub const THROTTLED: &str = "Throttled";
    /// The object does not fit its own schema.
    pub const INVALID_OBJECT: &str = "InvalidObject";
}
