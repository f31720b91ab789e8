//! What users, administrators and bad luck can do to a world, besides crashes and a bad wire.
use common::testing::Edit;
use common::testing::wire::Target;

/// One act. Owners are addressed by server and key; what does not apply to the moment does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Deletes the owner.
    Delete,
    /// Edits the spec.
    Edit(Edit),
    /// Confirms a large removal.
    Confirm,
    /// Takes finalizer and annotations off.
    Strip,
    /// Takes only our finalizer off.
    StripFinalizer,
    /// Takes only the ledger off.
    StripLedger,
    /// Takes only the owner id off.
    StripOwnerId,
    /// Empties status.
    WipeStatus,
    /// Puts an earlier ledger back.
    Rollback,
    /// Puts an earlier ledger back that status knows to be old, and from which nothing is missing but what marks tell.
    RollbackThatShows,
    /// Cuts the ledger in the middle.
    CutLedger,
    /// A ledger of a newer version.
    NewerLedger,
    /// Spoils the owner id.
    SpoilOwnerId,
    /// Writes another owner id over the right one.
    ForgeOwnerId,
    /// Puts back what was there before it was cut or spoilt.
    Repair,
    /// An owner that is gone is made again under its name.
    CreateAgain,
    /// An owner that is gone is applied from its bare manifest on the other server under another name, asking for its owner id.
    ApplyElsewhere,
    /// The storage of the API server loses the object.
    Lose,
    /// A backup of the object comes back: new uid, no status.
    RestoreBackup,
    /// The newest version comes back: new uid, no status.
    RestoreNewest,
    /// Pauses.
    Pause,
    /// Unpauses.
    Unpause,
    /// A stranger makes something on the natural key or name of a piece.
    Stranger,
    /// A stranger's thing with our tag keys, for another owner.
    ForeignTwin,
    /// A thing with our owner id under another place.
    OtherPlaceTwin,
    /// A stranger's thing is there, and the owner is edited to use it.
    Reference,
    /// Somebody deletes a stranger's thing.
    HandDeleteStranger,
    /// Somebody deletes one of our things.
    HandDelete,
    /// Somebody takes the tags off one of our things.
    HandUntag,
    /// Somebody gives one of our things to another owner.
    HandRetag,
    /// A permission is taken away.
    Deny,
    /// Permissions are given back.
    Allow,
    /// The credentials are those of another account.
    OtherAccount,
    /// The credentials are right again.
    RightAccount,
    /// Quota is used up.
    Quota,
    /// Quota is free again.
    NoQuota,
    /// Builds fail.
    FailBuilds,
    /// Builds work again.
    FixBuilds,
    /// Another provider's finalizer appears.
    PeerOn,
    /// It goes.
    PeerOff,
    /// A process's wall clock jumps by an hour.
    ClockJump,
    /// No connection for a minute.
    Outage(Target),
    /// All processes die.
    CrashAll,
    /// Move, step 1: the source is paused.
    MovePause,
    /// Move, step 2: a paused copy without status on the other server.
    MoveCopy,
    /// Move, step 3: the source is marked for removal and loses all other annotations.
    MoveMark,
    /// Move, step 4: the source loses finalizers and goes.
    MoveRemove,
    /// Move, step 5: the copy is unpaused.
    MoveUnpause,
    /// The manifest is applied on the other server.
    CopyManifest,
    /// The manifest is applied under another name.
    CopyName,
    /// The copy takes the source's place over.
    TakePlace,
    /// The copy takes the source's owner id over.
    TakeOwner,
    /// The copy starts with nothing.
    TakeNone,
    /// The source starts with nothing.
    SourceTakeNone,
    /// An owner made again under its name takes back what was made in its place.
    TakeBack,
    /// The copy is deleted.
    DeleteCopy,
}
