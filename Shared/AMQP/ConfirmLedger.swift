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
        let settled = entries.filter { multiple ? $0.tag <= tag : $0.tag == tag }
        entries.removeAll { multiple ? $0.tag <= tag : $0.tag == tag }
        return settled.flatMap(\.confirmations)
    }

    /// Takes everything: the connection is gone.
    mutating func abandon() -> [Outbox.Confirmation] {
        defer { self = ConfirmLedger() }
        return entries.flatMap(\.confirmations)
    }

    var isEmpty: Bool { entries.isEmpty }
}
