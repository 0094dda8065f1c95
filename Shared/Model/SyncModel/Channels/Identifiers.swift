/// A text with a type of its own, so that different kinds of identifiers cannot be exchanged.
package protocol TextIdentifier: Hashable, Sendable, CustomStringConvertible {
    /// The text in the caller's or device's spelling.
    var text: String { get }
    /// Wraps the text without a check; limits are checked at the entry to the service.
    init(_ text: String)
}

extension TextIdentifier {
    package var description: String { text }

    // Byte by byte, as in the database. Swift's String also treats canonical equivalents as equal, which could make two
    // users one.
    package static func == (left: Self, right: Self) -> Bool { left.text.isSame(as: right.text) }
    package func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}

extension String {
    /// Whether both texts have the same UTF-8 bytes; canonical equivalents are different.
    package func isSame(as other: String) -> Bool {
        var (left, right) = (self, other)
        return left.withUTF8 { left in right.withUTF8 { right in left.elementsEqual(right) } }
    }

    /// Whether the text is before the other in the order of UTF-8 bytes. Only equal texts precede neither way.
    package func precedes(_ other: String) -> Bool { utf8.lexicographicallyPrecedes(other.utf8) }

    /// A hash that is consistent with `isSame`.
    package func hashBytes(into hasher: inout Hasher) {
        var text = self
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(0xff as UInt8)
    }
}

/// The id of an app in one environment, `<workspaceId>_<appId>`. It is looked up as a whole and never split (W1).
package struct InstanceID: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

extension InstanceID {
    /// Workspace and app, for files that name both. The value is nil for an id without `_` or with more than one. An
    /// instance is
    /// never looked up by its parts.
    package var parts: (workspaceID: String, appID: String)? {
        let parts = text.split(separator: "_", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
        return (parts[0], parts[1])
    }
}

/// A Sync ID: the name of one kind of data in an instance (W2).
package struct BizType: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// The name of a conversation: oplogs of one channel that a backend gives the same name (D19).
package struct ConversationName: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// A user of the tenant's app.
package struct UserID: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// A session id, with which the app proves a user's session (V1).
package struct SessionID: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// A device ("utdid"), stable across launches of the app (K5).
package struct DeviceID: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// The random id of a client's local store. A new installation of the app makes a new one, and so a new receiver (W7).
package struct StoreID: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// The caller's own id of a push, its idempotence key within a channel (D18).
package struct ThirdMessageID: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// The id of an oplog in its channel: `epoch << 40 | sequence`, below 2^53, rising in commit order
/// (Design.md#from-push-to-oplog).
package struct OplogID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let value: Int64
    package init(_ value: Int64) { self.value = value }
    /// The position before the first oplog of every channel.
    package static let zero = OplogID(0)
    package static func < (left: OplogID, right: OplogID) -> Bool { left.value < right.value }
    package var description: String { String(value) }
}

/// Sync IDs of the service's own pushes.
package enum ReservedSyncID {
    /// Results of device operations. Its configuration, for devices, is created with the instance's relay URL.
    package static let results = BizType("MSS_RESULTS")
    /// Diagnosis commands to devices, and the component of the operations that upload logs. Its configuration, for
    /// devices, is created with the first command.
    package static let diagnosis = BizType("MSS_DIAGNOSIS")
}
