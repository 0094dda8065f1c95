/// One operation record: what a person did, as a link of a chain of hashes (spec C9, reliability SEC15). Everything that
/// is hashed is kept as it is stored.
package struct OperationRecord: Hashable, Sendable {
    /// From 1, without gaps, in the order of the commits.
    package var number: Int64
    /// Microseconds since 1970 by the store's clock; never less than in an earlier record.
    package var recordedAtMicroseconds: Int64
    /// The actor's name, with control characters, quotes and backslashes as JSON escapes.
    package var actor: String
    /// Where the actor came from, escaped likewise; empty: not known.
    package var source: String
    /// The code of an `OperationAction`; of a newer build's it may be none.
    package var actionCode: Int16
    /// Empty: of no instance.
    package var instanceID: InstanceID
    /// As in `OperationEntry`, escaped like the actor.
    package var subject: String
    /// JSON, in one line.
    package var before: String?
    package var after: String?
    /// 32 bytes: the hash of the record before.
    package var previousHash: [UInt8]
    /// 32 bytes: SHA-256 over all of the above.
    package var hash: [UInt8]

    package init(
        number: Int64, recordedAtMicroseconds: Int64, actor: String, source: String, actionCode: Int16,
        instanceID: InstanceID, subject: String, before: String?, after: String?, previousHash: [UInt8], hash: [UInt8]
    ) {
        self.number = number
        self.recordedAtMicroseconds = recordedAtMicroseconds
        self.actor = actor
        self.source = source
        self.actionCode = actionCode
        self.instanceID = instanceID
        self.subject = subject
        self.before = before
        self.after = after
        self.previousHash = previousHash
        self.hash = hash
    }

    /// Nil for an action that this build does not know.
    package var action: OperationAction? { OperationAction(rawValue: actionCode) }

    /// The action's word; its number where this build does not know it.
    package var actionWord: String { action?.word ?? "action-\(actionCode)" }

    /// When it was recorded.
    package var recordedAt: WallTime { WallTime(milliseconds: recordedAtMicroseconds / 1_000) }
}
