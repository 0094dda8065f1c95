import MobileSync

/// Changes that take effect together. `EntityStore.transaction` passes it to its body.
///
/// It also has the calls of `EntitySnapshot`, which see its own changes.
public final class EntityTransaction: EntitySnapshot {
    var submissions: SubmissionBuilder { SubmissionBuilder(context: context) }
    var canceller: ChangeCanceller { ChangeCanceller(context: context) }
    var results: ResultApplier { ResultApplier(context: context) }
    var conflicts: ConflictResolver { ConflictResolver(context: context) }
    var importer: RowImporter { RowImporter(context: context) }

    /// Deletes old entries: counters of deletions, and cancelled operations without a result. No import that old can
    /// still arrive.
    func prune() throws {
        let oldest = context.now - EntityLimits.kept.milliseconds
        try TombstoneStore(context: context).prune(before: oldest)
        try operations.prune(before: oldest)
    }
}
