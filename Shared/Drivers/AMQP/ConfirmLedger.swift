/// Published messages without a confirmation from the broker, in publishing order; pure (RabbitMQ: publisher confirms).
struct ConfirmLedger {
    private struct Entry {
        let tag: UInt64
        let confirmations: [Outbox.Confirmation]
    }

    private var nextTag: UInt64 = 1
    private var entries: [Entry] = []

    /// Records a message that was published on a channel in confirm mode.
    mutating func recordPublished(_ confirmations: [Outbox.Confirmation]) {
        entries.append(Entry(tag: nextTag, confirmations: confirmations))
        nextTag += 1
    }

    /// Removes the confirmed messages and returns their callbacks; empty for an unknown tag.
    mutating func removeConfirmed(_ tag: UInt64, multiple: Bool) -> [Outbox.Confirmation] {
        // Tags rise, so all tags up to this one are at the front.
        guard let first = entries.first?.tag, tag >= first else { return [] }
        let count = entries.prefix { $0.tag <= tag }.count
        let start = multiple ? 0 : count - 1
        guard multiple || entries[start].tag == tag else { return [] }
        defer { entries.removeSubrange(start..<count) }
        return entries[start..<count].flatMap(\.confirmations)
    }

    /// Removes everything after the connection was lost, and returns the callbacks.
    mutating func removeAll() -> [Outbox.Confirmation] {
        defer { self = ConfirmLedger() }
        return entries.flatMap(\.confirmations)
    }

    var isEmpty: Bool { entries.isEmpty }
}
