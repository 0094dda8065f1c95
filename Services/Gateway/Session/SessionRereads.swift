import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// The re-reads of one connection: data below its positions (D3); pure.
///
/// Each number is sent once per connection. The device receives an unacknowledged one again on its next connection.
struct SessionRereads {
    /// The maximum that the store lists at once. A shorter list is complete.
    static let listMax = 16

    private var waiting: [Mss_Bus_V1_Reread] = []
    private var sent: [UInt64: ChannelKey] = [:]
    private var done: Set<UInt64> = []
    /// The device has stored these, and the store does not know it yet.
    private var unreported: [UInt64: ChannelKey] = [:]
    private var recalled: [Int64: Set<Int64>] = [:]
    private var mayBeMore = false

    /// Applies the list of a registration's reply, without re-reads that were recalled meanwhile.
    mutating func apply(_ list: [Mss_Bus_V1_Reread]) {
        waiting = list.filter { reread in
            let number = UInt64(bitPattern: reread.rereadID)
            return sent[number] == nil && !done.contains(number)
                && recalled[reread.channelID]?.contains(reread.oplog.id) != true
        }
        mayBeMore = list.count >= Self.listMax
        recalled = [:]
    }

    /// Sends re-reads as batches of their own, by the rules of every batch. The others wait.
    ///
    /// - Parameter channels: the channels of the session by their ids.
    mutating func send(
        channels: [Int64: ChannelKey], by eligibility: Eligibility, in context: SessionContext
    ) -> (pushes: [SessionAction], awaitsVerdict: Bool) {
        var (pushes, awaitsVerdict) = ([SessionAction](), false)
        guard !waiting.isEmpty else { return (pushes, awaitsVerdict) }
        waiting.removeAll { reread in
            guard let key = channels[reread.channelID] else { return false }
            let reason = eligibility.withholding(key, channelID: reread.channelID, in: context)
            if case .awaitsVerdict = reason { awaitsVerdict = true }
            guard reason == nil else { return false }
            sent[UInt64(bitPattern: reread.rereadID)] = key
            if let push = Self.push(reread, of: key, to: eligibility.identity, in: context) { pushes.append(push) }
            return true
        }
        return (pushes, awaitsVerdict)
    }

    private static func push(
        _ reread: Mss_Bus_V1_Reread, of key: ChannelKey, to identity: SessionIdentity, in context: SessionContext
    ) -> SessionAction? {
        let oplog = Oplog(bus: reread.oplog)
        guard oplog.skipReason(for: identity.traits, now: context.databaseTime) == nil else { return nil }
        var message = Mss_Device_V1_ChannelBatch(
            key, of: identity, after: OplogID(oplog.id.value - 1), upto: oplog.id, entries: [oplog],
            reread: UInt64(bitPattern: reread.rereadID))
        message.newlyMatching = reread.newlyMatching
        return .push(message, handedOut: [oplog.id], channelID: reread.channelID)
    }

    /// Whether an oplog was recalled after the last list.
    func isRecalled(_ id: Int64, channelID: Int64) -> Bool { recalled[channelID]?.contains(id) ?? false }

    /// Withdraws a re-read that was not written. The store will list it again.
    mutating func withdraw(_ number: UInt64) { sent[number] = nil }

    /// Records that the device has stored a re-read. A number that was not sent has no effect.
    mutating func acknowledged(_ number: UInt64) {
        guard let key = sent.removeValue(forKey: number) else { return }
        done.insert(number)
        unreported[number] = key
    }

    /// Reports the stored re-reads that the device may report, in the order of their numbers.
    mutating func report(by eligibility: Eligibility, in context: SessionContext) -> [SessionAction] {
        guard !unreported.isEmpty else { return [] }
        let numbers = unreported.filter { eligibility.mayReport($0.value, in: context) }.keys.sorted()
        for number in numbers { unreported[number] = nil }
        return numbers.map { .finishReread(Int64(bitPattern: $0)) }
    }

    /// Whether the store may have more than it listed.
    mutating func wantsMore() -> Bool {
        defer { if sent.isEmpty { mayBeMore = false } }
        return mayBeMore && sent.isEmpty
    }

    /// Records a recall, so that the oplog is not sent.
    mutating func recall(_ id: OplogID, channelID: Int64) {
        waiting.removeAll { $0.channelID == channelID && $0.oplog.id == id.value }
        recalled[channelID, default: []].insert(id.value)
    }

    /// Removes the re-reads of the former user.
    mutating func forgetUser() {
        waiting = []
        sent = sent.filter { !$0.value.kind.needsUser }
        unreported = unreported.filter { !$0.value.kind.needsUser }
    }
}
