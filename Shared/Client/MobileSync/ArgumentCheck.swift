import SyncModel

/// The checks of the app's arguments. Those that throw, throw `SyncError.invalidArgument`.
enum ArgumentCheck {
    /// Throws for an invalid Sync ID, and for the Sync ID that the client itself reads.
    static func bizType(_ bizType: String) throws(SyncError) {
        try text(bizType, "a Sync ID", Limits.bizTypeUnits)
        guard !bizType.isSame(as: ReservedSyncID.results.text) else {
            throw SyncError(.invalidArgument, "\(bizType) is reserved for the client; use operationResults()")
        }
    }

    /// Throws for an invalid id of an instance, user or device.
    static func identifier(_ identifier: String, _ name: String) throws(SyncError) {
        try text(identifier, name, Limits.linkTokenUnits)
    }

    /// Throws for an invalid name of a conversation; nil is valid.
    static func conversation(_ conversation: String?) throws(SyncError) {
        if let conversation { try text(conversation, "a conversation", Limits.conversationUnits) }
    }

    /// Returns the nearest permitted size of a list or batch, 1 to 1,000.
    static func clamped(_ count: Int) -> Int { min(max(count, 1), 1_000) }

    private static func text(_ text: String, _ name: String, _ maximumUnits: Int) throws(SyncError) {
        guard (1...maximumUnits).contains(text.utf16.count), !text.utf8.contains(0) else {
            throw SyncError(.invalidArgument, "\(name) must have 1 to \(maximumUnits) characters without NUL")
        }
    }
}
