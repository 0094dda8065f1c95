import DeliveryHistory
import DeviceProtocol
import SyncModel

/// Looks at every frame that a lying device is sent: no device is so bad that it may have what is another's, or checked
/// data on a session that has ended.
struct LiarJudge {
    /// What a gateway should not have sent.
    enum Finding: Hashable, Sendable {
        case stranger(String)
        case stale(bizType: String, session: String)
        case breach(SocketBarrier.Breach, push: String)
    }

    private struct Bind {
        let user: String
        let session: String
    }

    let instance: String
    let device: String
    private var binds: [UInt32: Bind] = [:]
    /// Sessions on which nothing checked may come any more.
    private var closed: Set<String> = []
    /// Pings after whose answers a session is closed: what comes then was sent after a verdict could still count.
    private var lines: [UInt64: String] = [:]
    private var barrier = SocketBarrier()
    private let end: @Sendable (String) -> TorturePushLedger.End?

    /// - Parameter end: of a push, as far as one is known.
    init(
        instance: String, device: String, end: @escaping @Sendable (String) -> TorturePushLedger.End? = { _ in nil }
    ) {
        self.instance = instance
        self.device = device
        self.end = end
    }

    /// The device sends a ping.
    mutating func pinged(_ number: UInt64, at now: Duration) { barrier.pinged(number, at: now) }

    /// The device asks to be bound.
    mutating func bound(_ number: UInt32, user: String, session: String) {
        binds[number] = Bind(user: user, session: session)
    }

    /// A verdict on the session cannot count any more when a ping of this number is answered.
    mutating func draw(line number: UInt64, after session: String) { lines[number] = session }

    /// Looks at a frame.
    mutating func received(_ packet: Mss_Device_V1_Packet) -> [Finding] {
        switch packet.body {
        case .pong(let pong):
            barrier.ponged(pong.number)
            if let session = lines.removeValue(forKey: pong.number) { closed.insert(session) }
            return []
        case .push(let push): return push.batches.flatMap(findings)
        default: return []
        }
    }

    private func findings(in batch: Mss_Device_V1_ChannelBatch) -> [Finding] {
        if batch.bizType == TortureWorld.orders { return strangers(inStates: batch) }
        guard let kind = TortureWorld.kinds.first(where: { $0.bizType == batch.bizType }) else {
            return [.stranger("\(device) is sent the Sync ID \(batch.bizType), which nobody configured")]
        }
        let bind = binds[batch.bindNumber]
        if kind.kind.needsUser, bind == nil {
            return [
                .stranger("\(device) is sent \(batch.bizType) of bind \(batch.bindNumber), which it never asked for")
            ]
        }
        let target = TortureWorld.target(instance, kind, kind.kind.needsUser ? bind?.user ?? "" : device)
        let data = batch.entries.filter { $0.recalls == 0 }
        var findings = data.compactMap { entry -> Finding? in
            if let breach = barrier.breach(by: end(entry.thirdMessageID)) {
                return .breach(breach, push: entry.thirdMessageID)
            }
            let payload = String(decoding: entry.payload, as: UTF8.self)
            if payload == target.payload(of: entry.thirdMessageID) { return nil }
            return .stranger("\(device) of \(target.instance) is sent \(payload.prefix(100)) as \(target)")
        }
        if kind.bizType == TortureWorld.checked.bizType, !data.isEmpty, let session = bind?.session,
            closed.contains(session)
        {
            findings.append(.stale(bizType: batch.bizType, session: session))
        }
        return findings
    }

    /// The tenant's new states of other users' orders.
    private func strangers(inStates batch: Mss_Device_V1_ChannelBatch) -> [Finding] {
        let user = binds[batch.bindNumber]?.user
        return batch.entries.compactMap { entry -> Finding? in
            let payload = String(decoding: entry.payload, as: UTF8.self)
            if let user, TortureState.operation(in: payload, of: user, instance) != nil { return nil }
            return .stranger("\(device) is sent the state \(payload.prefix(100)) as \(user ?? "nobody")")
        }
    }
}
