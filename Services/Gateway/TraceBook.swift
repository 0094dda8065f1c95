import DeviceProtocol
import ServiceKit
import SyncModel
import Synchronization

/// Notes the steps of traced pushes at their devices: handed out, acknowledged, confirmed. Without a tracer it notes
/// nothing.
final class TraceBook: Sendable {
    /// A device's view of a channel.
    private struct Receiver: Hashable {
        let channelID: Int64
        let deviceID: DeviceID
    }

    private struct Entry {
        let oplogID: Int64
        let trace: PushTrace
        var since: UInt64
        var isAcknowledged = false
    }

    private struct State {
        var entries: [Receiver: [Entry]] = [:]
        var count = 0
    }

    /// Pushes under way at one time; beyond this all are forgotten.
    private static let entriesMax = 10_000

    private let tracer: PushTracer?
    private let state = Mutex(State())

    init(tracer: PushTracer?) { self.tracer = tracer }

    /// These have left for a device.
    func handedOut(_ batches: [GatheredBatch], to identity: SessionIdentity) {
        guard let tracer else { return }
        for batch in batches {
            guard let kind = SyncModel.ChannelKind(wire: batch.batch.kind) else { continue }
            let user = identity.userID?.text ?? ""
            let target = kind.isGlobal ? "" : kind.needsUser ? user : identity.deviceID.text
            for entry in batch.batch.entries where entry.recalls == 0 {
                let id = ThirdMessageID(entry.thirdMessageID)
                guard let trace = tracer.trace(of: identity.instanceID, BizType(batch.batch.bizType), to: target, id)
                else { continue }
                let now = PushTracer.now
                tracer.note(
                    .handOut, of: trace, on: identity.deviceID.text, since: now,
                    ["mss.oplog_id": "\(entry.oplogID)", "mss.attempt": "\(max(1, entry.attempt))"])
                let receiver = Receiver(channelID: batch.channelID, deviceID: identity.deviceID)
                state.withLock { state in
                    if state.count >= Self.entriesMax { state = State() }
                    state.count += 1
                    state.entries[receiver, default: []].append(Entry(oplogID: entry.oplogID, trace: trace, since: now))
                }
            }
        }
    }

    /// A device has a channel up to here on its disk.
    func acknowledged(channelID: Int64, deviceID: DeviceID, upto: OplogID) {
        guard let tracer else { return }
        let receiver = Receiver(channelID: channelID, deviceID: deviceID)
        let reached = state.withLock { state -> [Entry] in
            guard let entries = state.entries[receiver] else { return [] }
            let reached = entries.filter { $0.oplogID <= upto.value && !$0.isAcknowledged }
            guard !reached.isEmpty else { return [] }
            state.entries[receiver] = entries.map { entry in
                guard entry.oplogID <= upto.value, !entry.isAcknowledged else { return entry }
                return Entry(
                    oplogID: entry.oplogID, trace: entry.trace, since: PushTracer.now, isAcknowledged: true)
            }
            return reached
        }
        for entry in reached { tracer.note(.acknowledge, of: entry.trace, on: deviceID.text, since: entry.since) }
    }

    /// A device's app has processed these.
    func confirmed(channelID: Int64, deviceID: DeviceID, _ ids: [Int64]) {
        guard let tracer else { return }
        let receiver = Receiver(channelID: channelID, deviceID: deviceID)
        let done = state.withLock { state -> [Entry] in
            guard let entries = state.entries[receiver] else { return [] }
            let left = entries.filter { !ids.contains($0.oplogID) }
            state.count -= entries.count - left.count
            state.entries[receiver] = left.isEmpty ? nil : left
            return entries.filter { ids.contains($0.oplogID) }
        }
        for entry in done { tracer.note(.confirm, of: entry.trace, on: deviceID.text, since: entry.since) }
    }
}
