/// A value that is text underneath but never interchangeable with another kind of text.
package protocol TextIdentifier: Hashable, Sendable, CustomStringConvertible {
    /// The text as callers and devices spell it.
    var text: String { get }
    /// Wraps the text; limits are checked where it enters the service.
    init(_ text: String)
}

extension TextIdentifier {
    package var description: String { text }

    // Byte by byte, as the database compares. Swift's String also takes canonical equivalents for equal, by which two
    // users could be one.
    package static func == (left: Self, right: Self) -> Bool { left.text.isSame(as: right.text) }
    package func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}

extension String {
    /// Equality of the bytes in UTF-8, not of what they look like.
    package func isSame(as other: String) -> Bool {
        var (left, right) = (self, other)
        return left.withUTF8 { left in right.withUTF8 { right in left.elementsEqual(right) } }
    }

    /// An order of the bytes in UTF-8, in which none but the same texts are level.
    package func precedes(_ other: String) -> Bool { utf8.lexicographicallyPrecedes(other.utf8) }

    /// The hash that goes with `isSame`.
    package func hashBytes(into hasher: inout Hasher) {
        var text = self
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(0xff as UInt8)
    }
}

/// One app in one environment, `<workspaceId>_<appId>`, looked up as a whole and never split (spec §1).
package struct InstanceID: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

extension InstanceID {
    /// Workspace and app as the id says them, for files that name both; nil when the id leaves doubt, with no `_` or
    /// with more than one. An instance is never looked up by them.
    package var parts: (workspaceID: String, appID: String)? {
        let parts = text.split(separator: "_", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
        return (parts[0], parts[1])
    }
}

/// The Sync ID of one push scenario within an instance (spec §1).
package struct BizType: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// A user of the tenant's app.
package struct UserID: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// What the app presents as the proof of a user's session (spec V1).
package struct SessionID: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// A device ("utdid"), stable across launches of the app (spec K5).
package struct DeviceID: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// The random value of a client's local store; a re-install makes a new one and so a new receiver (spec §1).
package struct StoreID: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// The caller's own id of a push, its idempotence key within a channel (spec D18).
package struct ThirdMessageID: TextIdentifier {
    package let text: String
    package init(_ text: String) { self.text = text }
}

/// Position of an oplog in its channel: `epoch << 40 | sequence`, below 2^53, rising in commit order (design §4).
package struct OplogID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let value: Int64
    package init(_ value: Int64) { self.value = value }
    /// The position before the first oplog of every channel.
    package static let zero = OplogID(0)
    package static func < (left: OplogID, right: OplogID) -> Bool { left.value < right.value }
    package var description: String { String(value) }
}
