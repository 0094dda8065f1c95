import DeviceProtocol
import ServiceKit
import SyncModel
import Synchronization

/// Records spans of traced pushes at their devices: handed out, acknowledged, confirmed. Without a tracer it records
/// nothing.
final class DeviceSpanRecorder: Sendable {
    /// One device in one channel.
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

    /// Maximum of traced pushes in flight. Above it, all are dropped.
    private static let entriesMax = 10_000

    private let tracer: PushTracer?
    private let state = Mutex(State())

    init(tracer: PushTracer?) { self.tracer = tracer }

    /// Records that batches were written to a device.
    func handedOut(_ batches: [OutboundBatch], to identity: SessionIdentity) {
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
                tracer.record(
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

    /// Records that a device has stored a channel up to an id.
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
        for entry in reached { tracer.record(.acknowledge, of: entry.trace, on: deviceID.text, since: entry.since) }
    }

    /// Records that a device's app has confirmed oplogs.
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
        for entry in done { tracer.record(.confirm, of: entry.trace, on: deviceID.text, since: entry.since) }
    }
}
