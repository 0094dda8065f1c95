import DeviceProtocol
import SyncModel

@testable import MobileSync

/// What backends were answered and what apps were given, and whether that keeps the promise. Faults are collected; none
/// may be left at the end (reliability §5, I1 to I8).
final class History {
    /// One push of a backend, with all its repeats.
    struct Push {
        let address: ChannelAddress
        let invokedAt: Duration
        var answeredAt: Duration?
        /// Known once the answer is definite.
        var id: OplogID?
        /// Some attempt may have been stored.
        var mayBeStored = false
    }

    private struct Given {
        var lastFirst: Int64 = 0
        var ids: Set<Int64> = []
        var confirmed: Set<Int64> = []
    }

    private struct ChannelOfDevice: Hashable {
        let deviceID: String
        let bizType: String
        let userID: String
    }

    private struct Bind: Hashable {
        let deviceID: String
        let attempt: Int
        let number: UInt32
    }

    private let simulation: Simulation
    private(set) var faults: [String] = []
    private(set) var pushes: [String: Push] = [:]
    /// In the order of their making.
    private(set) var names: [String] = []
    private var given: [ChannelOfDevice: Given] = [:]
    private var sessions: [Bind: BoundUser] = [:]
    /// Since when the tenant calls a session invalid.
    private var invalidSince: [String: Duration] = [:]
    /// How old a verdict may be that checked data goes out on.
    let verdictLifetime: Duration
    /// Business types whose data goes out to valid sessions only.
    let checkedTypes: Set<String>
    /// A standby that lacked commits has taken over: what was answered before may be gone, and its number given anew.
    var hasFailedOver = false
    private(set) var handOuts = 0

    init(_ simulation: Simulation, verdictLifetime: Duration, checkedTypes: Set<String>) {
        self.simulation = simulation
        self.verdictLifetime = verdictLifetime
        self.checkedTypes = checkedTypes
    }

    func fault(_ text: @autoclosure () -> String) {
        guard faults.count < 20 else { return }
        faults.append("\(simulation.elapsed.wholeMilliseconds) ms: \(text())")
    }

    // MARK: Backends

    /// What a push carries: who it is for, so that data which goes astray is seen (I6).
    static func payload(_ name: String, _ address: ChannelAddress) -> [UInt8] {
        Array("\(address.target.kind.rawValue)|\(address.target.target)|\(address.bizType.text)|\(name)".utf8)
    }

    func invoked(_ name: String, _ address: ChannelAddress) {
        pushes[name] = Push(address: address, invokedAt: simulation.elapsed)
        names.append(name)
    }

    func maybeStored(_ name: String) { pushes[name]?.mayBeStored = true }

    func answered(_ name: String, _ id: OplogID) {
        simulation.note("answered", id.value, about: name)
        if let known = pushes[name]?.id, known != id, !hasFailedOver {
            fault("\(name) has two ids, \(known.value) and \(id.value)")
        }
        guard var push = pushes[name] else { return }
        push.id = id
        push.answeredAt = push.answeredAt ?? simulation.elapsed
        pushes[name] = push
    }

    // MARK: Devices

    func began(_ deviceID: String) { simulation.note("app began", about: deviceID) }

    func bound(_ deviceID: String, to user: BoundUser?) {
        simulation.note("bound", about: "\(deviceID) \(user?.userID ?? "")")
    }

    /// A device has sent a frame.
    func received(_ packet: Mss_Device_V1_Packet, from deviceID: String, over attempt: Int) {
        let bind: Mss_Device_V1_Bind
        switch packet.body {
        case .connect(let connect): bind = connect.bind
        case .bind(let own): bind = own
        default: return
        }
        sessions[Bind(deviceID: deviceID, attempt: attempt, number: bind.bindNumber)] = BoundUser(
            userID: bind.userID, sessionID: bind.sessionID)
    }

    /// A gateway has written a frame: checked data only to sessions that are, or lately were, valid (I7), and of no
    /// other user (I6).
    func sent(_ packet: Mss_Device_V1_Packet, to deviceID: String, over attempt: Int) {
        guard case .push(let push)? = packet.body else { return }
        for batch in push.batches {
            guard let kind = SyncModel.ChannelKind(wire: batch.kind), kind.needsUser else { continue }
            guard let session = sessions[Bind(deviceID: deviceID, attempt: attempt, number: batch.bindNumber)] else {
                fault("\(deviceID) is sent data of a bind that it never made")
                continue
            }
            guard checkedTypes.contains(batch.bizType), !batch.entries.isEmpty,
                let since = invalidSince[session.sessionID]
            else { continue }
            if simulation.elapsed > since + verdictLifetime {
                fault("\(deviceID) is sent \(batch.bizType) on session \(session.sessionID), invalid since \(since)")
            }
        }
    }

    func handedOut(_ oplog: SyncOplog, to deviceID: String, user: String?) {
        handOuts += 1
        simulation.note("handed out", oplog.oplogID, Int64(oplog.attempt), about: "\(deviceID) \(oplog.bizType)")
        let name = oplog.thirdMessageID ?? ""
        guard let push = pushes[name] else { return fault("\(deviceID) is given \(name), which nobody pushed") }
        if oplog.payload != Self.payload(name, push.address) {
            fault("\(deviceID) is given \(name) with another payload")
        }
        let target = push.address.target
        let isItsOwn =
            switch target.kind {
            case .user: user == target.target && oplog.userID == target.target
            case .device: deviceID == target.target
            case .globalUser: user != nil
            case .globalDevice: true
            }
        if !isItsOwn { fault("\(deviceID) of user \(user ?? "-") is given \(name), which is for \(target.target)") }
        let channel = channel(of: oplog, on: deviceID)
        var given = given[channel] ?? Given()
        defer { self.given[channel] = given }
        if given.confirmed.contains(oplog.oplogID) {
            fault("\(deviceID) is given \(oplog.oplogID) after it confirmed it")
        }
        guard given.ids.insert(oplog.oplogID).inserted else { return }
        if oplog.attempt != 1 { fault("\(deviceID) is first given \(oplog.oplogID) as attempt \(oplog.attempt)") }
        if oplog.oplogID <= given.lastFirst {
            fault("\(deviceID) is given \(oplog.oplogID) after \(given.lastFirst)")
        }
        given.lastFirst = oplog.oplogID
    }

    func confirmed(_ oplog: SyncOplog, by deviceID: String) {
        given[channel(of: oplog, on: deviceID)]?.confirmed.insert(oplog.oplogID)
    }

    private func channel(of oplog: SyncOplog, on deviceID: String) -> ChannelOfDevice {
        ChannelOfDevice(deviceID: deviceID, bizType: oplog.bizType, userID: oplog.userID ?? "")
    }

    // MARK: Tenants

    func becameInvalid(_ sessionID: String) { invalidSince[sessionID] = simulation.elapsed }

    func isValid(_ sessionID: String) -> Bool { invalidSince[sessionID] == nil }

    // MARK: The end

    /// What a device should have been given and was not.
    func lacks(_ deviceID: String, user: String?, in store: MemoryStore) -> [String] {
        names.filter { name in
            guard let push = pushes[name], let id = push.id else { return false }
            let target = push.address.target
            switch target.kind {
            case .user: guard target.target == user else { return false }
            case .device: guard target.target == deviceID else { return false }
            case .globalUser, .globalDevice: return false
            }
            if hasFailedOver, !store.oplogs(of: push.address).contains(where: { $0.id == id }) { return false }
            let channel = ChannelOfDevice(
                deviceID: deviceID, bizType: push.address.bizType.text,
                userID: target.kind.needsUser ? target.target : "")
            guard let given = given[channel] else { return true }
            return !given.ids.contains(id.value)
        }
    }

    /// Whether what was answered is stored, once and in order.
    func check(_ store: MemoryStore) {
        var highest: [ChannelAddress: [(answeredAt: Duration, id: OplogID)]] = [:]
        for name in names {
            guard let push = pushes[name] else { continue }
            let stored = store.oplogs(of: push.address).filter { $0.thirdMessageID.text == name }
            if stored.count > 1 { fault("\(name) is stored \(stored.count) times") }
            guard let id = push.id, let answeredAt = push.answeredAt else {
                if !stored.isEmpty, !push.mayBeStored {
                    fault("\(name) is stored, and was said not to have been tried")
                }
                continue
            }
            // What a standby lacked may have been stored once more, by a command that came again.
            if !hasFailedOver || stored.first.map({ $0.id <= id }) ?? false {
                if stored.first?.id != id { fault("\(name) was answered with \(id.value) and is not stored under it") }
            }
            // A push that was answered before this one was sent comes before it (I3).
            let before = (highest[push.address] ?? []).filter { $0.answeredAt < push.invokedAt }.map(\.id).max()
            if let before, before >= id { fault("\(name) has \(id.value), and an earlier push \(before.value)") }
            highest[push.address, default: []].append((answeredAt, id))
        }
        for address in Set(pushes.values.map(\.address)) {
            let ids = store.oplogs(of: address).map(\.id)
            if zip(ids, ids.dropFirst()).contains(where: { $0 >= $1 }) { fault("ids of \(address) do not rise") }
        }
    }
}
