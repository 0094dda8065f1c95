/// One audit record: an operator's action, chained to the previous record by hashes (C9, SEC15). All hashed members
/// keep their stored form.
package struct OperationRecord: Hashable, Sendable {
    /// From 1, without gaps, in the order of the commits.
    package var number: Int64
    /// Microseconds since 1970 by the database's clock; never less than in an earlier record.
    package var recordedAtMicroseconds: Int64
    /// The actor's name, with control characters, quotes and backslashes as JSON escapes.
    package var actor: String
    /// The actor's address or host, escaped in the same way; empty: unknown.
    package var source: String
    /// The code of an `OperationAction`; a newer build can store an unknown one.
    package var actionCode: Int16
    /// Empty for an action on the service itself.
    package var instanceID: InstanceID
    /// As in `OperationEntry`, escaped like the actor.
    package var subject: String
    /// JSON on one line.
    package var before: String?
    package var after: String?
    /// The hash of the previous record, 32 bytes.
    package var previousHash: [UInt8]
    /// SHA-256 over all members above, 32 bytes.
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

    /// The value is nil for an action that this build does not know.
    package var action: OperationAction? { OperationAction(rawValue: actionCode) }

    /// The action's word; with its number if this build does not know it.
    package var actionWord: String { action?.word ?? "action-\(actionCode)" }

    /// When it was recorded.
    package var recordedAt: WallTime { WallTime(milliseconds: recordedAtMicroseconds / 1_000) }
}

/// The actor in audit records (C9, SEC15).
package struct OperationActor: Hashable, Sendable, ExpressibleByStringInterpolation {
    /// The tool and the user: `console:alice`, `mssctl:root`; `api` for backends.
    package var name: String
    /// The address of the browser, or the host of the command line; empty: unknown.
    package var source: String

    package init(_ name: String, from source: String = "") {
        self.name = name
        self.source = source
    }

    package init(stringLiteral name: String) { self.init(name) }

    /// Whether it is an operator at the console or the command line. Only actions of operators are recorded, not calls
    /// of backends (C9).
    package var isPerson: Bool { name.hasPrefix("console:") || name.hasPrefix("mssctl:") }
}

/// An operator's action that is to be recorded (C9).
package struct OperationEntry: Hashable, Sendable {
    package var actor: OperationActor
    package var action: OperationAction
    /// The value is nil for an action on the service itself, for example on console users.
    package var instanceID: InstanceID?
    /// The changed object: a Sync ID, key, user or device.
    package var subject: String
    /// The state before the change, as JSON; nil without one. Contains no secret and no payload.
    package var before: String?
    /// The state after the change, in the same form.
    package var after: String?

    package init(
        actor: OperationActor, action: OperationAction, instanceID: InstanceID?, subject: String, before: String? = nil,
        after: String? = nil
    ) {
        self.actor = actor
        self.action = action
        self.instanceID = instanceID
        self.subject = subject
        self.before = before
        self.after = after
    }
}

/// A selection of audit records (C9).
package struct RecordFilter: Hashable, Sendable {
    package var instanceID: InstanceID?
    /// The exact actor, as written before storage: `console:alice`.
    package var actor: String?
    /// Any part of an actor, without regard to case. Takes precedence over `actor`. Not sent over the bus.
    package var actorPart: String?
    /// The code of the action, which this build need not know.
    package var actionCode: Int16?
    /// The begin of the time range, inclusive.
    package var from: WallTime?
    /// The end of the time range, exclusive.
    package var to: WallTime?

    package init(
        instanceID: InstanceID? = nil, actor: String? = nil, actorPart: String? = nil, actionCode: Int16? = nil,
        from: WallTime? = nil, to: WallTime? = nil
    ) {
        self.instanceID = instanceID
        self.actor = actor
        self.actorPart = actorPart
        self.actionCode = actionCode
        self.from = from
        self.to = to
    }

    /// Whether no time range is set. A list then contains only the last days.
    package var hasNoTime: Bool { from == nil && to == nil }
}

/// One page of a list of audit records, in the list's order.
package struct RecordPage: Hashable, Sendable {
    package var records: [OperationRecord]
    /// Whether the list continues after the last record.
    package var hasMore: Bool
    /// The end of the whole chain at the time of reading.
    package var head: RecordHead

    package init(records: [OperationRecord], hasMore: Bool, head: RecordHead) {
        self.records = records
        self.hasMore = hasMore
        self.head = head
    }
}

/// The end of the chain of audit records. A copy elsewhere proves later that no earlier record was changed.
package struct RecordHead: Hashable, Sendable {
    /// The number of the last record; 0: there is none.
    package var number: Int64
    /// 32 bytes.
    package var hash: [UInt8]

    package init(number: Int64, hash: [UInt8]) {
        self.number = number
        self.hash = hash
    }
}
