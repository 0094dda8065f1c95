/// Published messages that the broker has not confirmed, in publishing order; pure (RabbitMQ: publisher confirms).
struct ConfirmLedger {
    private struct Entry {
        let tag: UInt64
        let confirmations: [Outbox.Confirmation]
    }

    private var nextTag: UInt64 = 1
    private var entries: [Entry] = []

    /// Books a message published on a channel in confirm mode.
    mutating func published(_ confirmations: [Outbox.Confirmation]) {
        entries.append(Entry(tag: nextTag, confirmations: confirmations))
        nextTag += 1
    }

    /// Takes what the broker settled; a tag that is not known settles nothing.
    mutating func settled(_ tag: UInt64, multiple: Bool) -> [Outbox.Confirmation] {
        // Tags rise, so those up to the tag are at the front.
        guard let first = entries.first?.tag, tag >= first else { return [] }
        let count = entries.prefix { $0.tag <= tag }.count
        let start = multiple ? 0 : count - 1
        guard multiple || entries[start].tag == tag else { return [] }
        defer { entries.removeSubrange(start..<count) }
        return entries[start..<count].flatMap(\.confirmations)
    }

    /// Takes everything: the connection is gone.
    mutating func abandon() -> [Outbox.Confirmation] {
        defer { self = ConfirmLedger() }
        return entries.flatMap(\.confirmations)
    }

    var isEmpty: Bool { entries.isEmpty }
}
