import DeliveryHistory
import DeviceProtocol
import SyncModel

/// Checks every frame that a misbehaving device receives. No device may receive another device's data, or checked data
/// on a session that has ended.
struct MisbehavingDeviceChecker {
    /// A frame or an entry that the gateway must not have sent.
    enum Finding: Hashable, Sendable {
        case foreign(String)
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
    /// Sessions on which no checked data may arrive any more.
    private var closed: Set<String> = []
    /// By ping number, sessions that end with the pong: frames after it were sent after the verdict lifetime.
    private var sessionEnds: [UInt64: String] = [:]
    private var barrier = SocketBarrier()
    private let end: @Sendable (String) -> TorturePushLedger.End?

    /// - Parameter end: returns the known end of a push, if any.
    init(
        instance: String, device: String, end: @escaping @Sendable (String) -> TorturePushLedger.End? = { _ in nil }
    ) {
        self.instance = instance
        self.device = device
        self.end = end
    }

    /// Records that the device sends a ping.
    mutating func pinged(_ number: UInt64, at now: Duration) { barrier.pinged(number, at: now) }

    /// Records that the device requests a bind.
    mutating func bound(_ number: UInt32, user: String, session: String) {
        binds[number] = Bind(user: user, session: session)
    }

    /// Records that no verdict on the session is valid at the time of the pong with this number.
    mutating func expectNoCheckedData(on session: String, afterPong number: UInt64) { sessionEnds[number] = session }

    /// Checks a frame.
    mutating func received(_ packet: Mss_Device_V1_Packet) -> [Finding] {
        switch packet.body {
        case .pong(let pong):
            barrier.ponged(pong.number)
            if let session = sessionEnds.removeValue(forKey: pong.number) { closed.insert(session) }
            return []
        case .push(let push): return push.batches.flatMap(findings)
        default: return []
        }
    }

    private func findings(in batch: Mss_Device_V1_ChannelBatch) -> [Finding] {
        if batch.bizType == TortureWorld.orders { return foreignStates(in: batch) }
        guard let kind = TortureWorld.kinds.first(where: { $0.bizType == batch.bizType }) else {
            return [.foreign("\(device) got the Sync ID \(batch.bizType), which has no configuration")]
        }
        let bind = binds[batch.bindNumber]
        if kind.kind.needsUser, bind == nil {
            return [
                .foreign("\(device) got \(batch.bizType) of bind \(batch.bindNumber), which it never requested")
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
            return .foreign("\(device) of \(target.instance) got \(payload.prefix(100)) as \(target)")
        }
        if kind.bizType == TortureWorld.checked.bizType, !data.isEmpty, let session = bind?.session,
            closed.contains(session)
        {
            findings.append(.stale(bizType: batch.bizType, session: session))
        }
        return findings
    }

    /// Finds states of other users' entities.
    private func foreignStates(in batch: Mss_Device_V1_ChannelBatch) -> [Finding] {
        let user = binds[batch.bindNumber]?.user
        return batch.entries.compactMap { entry -> Finding? in
            let payload = String(decoding: entry.payload, as: UTF8.self)
            if let user, TortureState.operation(in: payload, of: user, instance) != nil { return nil }
            return .foreign("\(device) got the state \(payload.prefix(100)) as \(user ?? "an unbound user")")
        }
    }
}
