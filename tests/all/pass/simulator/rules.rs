/// The safeguards that can be switched off, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Every write carries its number; a lower or equal one is refused.
    ExternalVersions,
    /// A delete leaves a document that remembers its number.
    Tombstones,
    /// No row, a record, and no document: Elasticsearch is told before it is settled.
    Untold,
    /// A conflict is not done: the next look decides.
    ConflictIsNotDone,
    /// What Elasticsearch cannot say settles nothing.
    UnknownNeverSettles,
    /// A session draws one number at a time.
    CacheOne,
    /// Elasticsearch is looked at first, then Postgres.
    ElasticFirst,
    /// A delete records its own number; off: the worker draws one when it looks.
    RecordedNumber,
    /// A row below its key's record has the version above it.
    AboveRecord,
    /// The sequence steps by four: the number above a delete's belongs to the key's next life alone.
    StepOfFour,
    /// A touch draws under the row's lock, and meets a locked row later.
    TouchUnderLock,
    /// What Postgres wants of a key is read in one statement: in that of the view, or else in one that asks for everything.
    OneStatement,
    /// A worker records a delete only where there is no row.
    RecordWithoutRow,
    /// Rows of a changed related row are touched after its commit; off: in its transaction.
    TouchAfterCommit,
    /// A change of a row touches the row of the same table that shows it.
    TouchSelf,
    /// A touch is no write: it touches nobody further, although a row may refer to itself.
    TouchEndsThere,
    /// Where the related values cannot be told, a touch that says so is left, and somebody writes everything again.
    FailedTouchIsLeft,
    /// A new floor waits for open writers.
    FloorUnderLock,
    /// A tombstone is swept when nothing older can be on its way.
    SweepOld,
    /// A sweep removes only what it saw.
    SweepVersioned,
    /// A record is forgotten when a later look sees its tombstone gone.
    SweepLooksAgain,
    /// A record that lies above its key's row stays.
    SweepKeepsWhatRowsNeed,
}

impl Rule {
    pub const ALL: [Rule; 22] = [
        Rule::ExternalVersions,
        Rule::Tombstones,
        Rule::Untold,
        Rule::ConflictIsNotDone,
        Rule::UnknownNeverSettles,
        Rule::CacheOne,
        Rule::ElasticFirst,
        Rule::RecordedNumber,
        Rule::AboveRecord,
        Rule::StepOfFour,
        Rule::TouchUnderLock,
        Rule::OneStatement,
        Rule::RecordWithoutRow,
        Rule::TouchAfterCommit,
        Rule::TouchSelf,
        Rule::TouchEndsThere,
        Rule::FailedTouchIsLeft,
        Rule::FloorUnderLock,
        Rule::SweepOld,
        Rule::SweepVersioned,
        Rule::SweepLooksAgain,
        Rule::SweepKeepsWhatRowsNeed,
    ];
}
