import AsyncHTTPClient
import DeliveryHistory
import Foundation
import SyncModel
import Synchronization

/// The shared state of a torture run. All tenants have users and devices of the same names, so that data of the wrong
/// tenant is detected.
final class TortureWorld: Sendable {
    /// Phase of the run.
    enum Phase: Sendable {
        /// Devices connect.
        case gathering
        /// Backends push, devices die, sessions end.
        case loaded
        /// No new load: every answered push must reach its devices.
        case draining
        case over
    }

    /// One Sync ID of the run.
    struct Kind: Sendable {
        let bizType: String
        let kind: ChannelKind
        let control: String
        var isMultiDevice = true
    }

    static let instances = (1...4).map { "torture-\($0)" }
    static let devicesPerUser = 2
    /// A device keeps the database time from its connect. Its process ends within this time.
    private static let clockMemory = TortureDevice.longestLife + .seconds(10)
    /// Verdict lifetime of checked data, in seconds.
    static let verdictSeconds = 5
    static let chat = Kind(
        bizType: "CHAT", kind: .user, control: #""scope":"appointed","target":"user","repush":"all""#)
    /// Its filter accepts every push, unless a user has a parameter that no honest app sets.
    static let checked = Kind(
        bizType: "CHECKED", kind: .user,
        control: #""scope":"appointed","target":"user","repush":"all","checkSession":true,"verdictLifetimeSeconds":"#
            + #"\#(verdictSeconds),"attributes":"level number","parameters":"least number = 0","#
            + #""filter":"level >= $least""#)
    /// Single-device data.
    static let solo = Kind(
        bizType: "SOLO", kind: .user, control: #""scope":"appointed","target":"user","repush":"all""#,
        isMultiDevice: false)
    /// Single-device data with the session check.
    static let checkedSolo = Kind(
        bizType: "CHECKED-SOLO", kind: .user,
        control: #""scope":"appointed","target":"user","repush":"all","checkSession":true,"verdictLifetimeSeconds":"#
            + "\(verdictSeconds)", isMultiDevice: false)
    /// Non-persistent pushes.
    static let live = Kind(
        bizType: "LIVE", kind: .user, control: #""scope":"appointed","target":"user","persistent":false"#)
    static let lock = Kind(
        bizType: "LOCK", kind: .device, control: #""scope":"appointed","target":"device","repush":"all""#)
    static let news = Kind(
        bizType: "NEWS", kind: .globalDevice,
        control: #""scope":"global","target":"device","repush":100,"immediate":true"#)
    static let kinds = [chat, checked, solo, checkedSolo, live, lock, news]
    /// The level of every checked push. The default of the filter's parameter is lower.
    static let level = 5
    /// Whether devices bind users with invalid sessions in this instance. There single-device data has the session
    /// check, since such a bind would otherwise change the owner.
    static func isForged(_ instance: String) -> Bool { instances.prefix(2).contains(instance) }
    /// The single-device Sync ID of an instance.
    static func solo(in instance: String) -> Kind { isForged(instance) ? checkedSolo : solo }
    /// The Sync ID of device operations, and of the states that the tenant pushes after them.
    static let orders = "ORDER"

    let stack: TortureStack
    let history: TortureHistory
    let devicesPerInstance: Int
    let api: TortureAPI
    /// Command that runs a test program of the Java client, without its name. The value is nil for a run without Java
    /// apps.
    let javaCommand: [String]?
    let ledger = TorturePushLedger()
    private let requestedBursts = Mutex<[Burst]>([])
    /// Time at which no device can have the wrong database time any more. The value is nil if the clock is correct, or
    /// wrong now.
    private let clockRightAt = Mutex<Duration?>(nil)
    private let state = Mutex((phase: Phase.gathering, number: 0, present: 0))
    private let counts = Mutex<[String: Int]>([:])
    /// By device, the last status of its client and its time.
    private let lastStatuses = Mutex<[String: (text: String, at: Duration)]>([:])

    /// - Parameter devices: total number. A multiple of the number of tenants and of devices per user.
    init(stack: TortureStack, history: TortureHistory, devices: Int, javaCommand: [String]?) {
        self.stack = stack
        self.javaCommand = javaCommand
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 200
        api = TortureAPI(
            client: HTTPClient(eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: configuration),
            ports: stack.apis)
        self.history = history
        devicesPerInstance = devices / Self.instances.count
    }

    var usersPerInstance: Int { devicesPerInstance / Self.devicesPerUser }

    /// Whether misbehaving devices can bind this user with a valid session. Checked data of the other users goes to
    /// honest devices alone.
    static func isShared(_ user: Int) -> Bool { user.isMultiple(of: 2) }

    /// Users of each instance with an MQTT device and with extra batches. They are the first shared users.
    var busyUsers: [Int] { (0..<max(1, devicesPerInstance / 40)).map { $0 * 2 }.filter { $0 < usersPerInstance } }

    /// Pushes that a device requests for a test.
    struct Burst: Sendable {
        let target: HistoryTarget
        let count: Int
        /// Delay from the responses to the recalls. The value is nil for no recall.
        let recallAfter: Duration?
    }

    /// Requests pushes from the backends.
    func request(_ burst: Burst) { requestedBursts.withLock { $0.append(burst) } }

    /// Removes and returns the requested pushes.
    func removeRequestedBursts() -> [Burst] {
        requestedBursts.withLock { requestedBursts in
            defer { requestedBursts = [] }
            return requestedBursts
        }
    }

    /// Ends a session at the tenant, and returns when no checked data may be sent on it.
    ///
    /// - Parameter isRevoking: whether the tenant revokes the session, which has effect at once. Otherwise, or without
    ///   a success response, the call waits for the verdict lifetime.
    /// - Returns: false if the tenant did not end the session.
    func endSession(
        _ session: String, of user: String, in instance: String, revoking isRevoking: Bool
    ) async -> Bool {
        guard (try? await stack.endSession(session)) != nil else { return false }
        if isRevoking, await api.revoke(session, of: user, in: instance, api: next())?.success == true {
            count("sessions revoked")
            return true
        }
        try? await Task.sleep(for: .seconds(Self.verdictSeconds))
        return true
    }

    // MARK: Faults that change the expectations

    /// Records the start of a fault.
    func beginDisturbance(by fault: FaultSchedule.Planned) {
        if fault.kind == .clockJump(.database) {
            clockRightAt.withLock { $0 = nil }
            setDatabaseClock(isRight: false)
        }
        if fault.kind.maySpoilSessions { history.observe(PresenceEvent.disturbed) }
    }

    /// Records that a round of faults has healed and the service has caught up.
    func endDisturbance(of round: [FaultSchedule.Planned]) {
        let now = history.elapsed
        let hasJumped = round.contains { $0.kind == .clockJump(.database) }
        let isRight = clockRightAt.withLock { rightAt in
            if hasJumped { rightAt = now + Self.clockMemory }
            guard let known = rightAt, known <= now else { return false }
            rightAt = nil
            return true
        }
        if isRight { setDatabaseClock(isRight: true) }
        if round.contains(where: \.kind.maySpoilSessions) { history.observe(PresenceEvent.healed) }
    }

    private func setDatabaseClock(isRight: Bool) {
        ledger.databaseClock(isRight: isRight)
        history.observe(.databaseClock(isRight: isRight))
    }

    var phase: Phase {
        get { state.withLock { $0.phase } }
        set { state.withLock { $0.phase = newValue } }
    }

    /// Number of devices that have received their backlog.
    var present: Int { state.withLock { $0.present } }

    /// Changes the number of ``present`` devices.
    func changePresent(by change: Int) { state.withLock { $0.present += change } }

    /// Records the status of a device's client.
    func recordStatus(_ text: String, of device: String) {
        let now = history.elapsed
        lastStatuses.withLock { $0[device] = (text, now) }
    }

    /// The last status of a device's client, and its age.
    func lastStatus(of device: String) -> String {
        guard let last = lastStatuses.withLock({ $0[device] }) else { return "its client has reported nothing" }
        return "its client last reported \(last.text), \(Int((history.elapsed - last.at) / .seconds(1))) s ago"
    }

    /// A number that is unique in the run.
    func next() -> Int {
        state.withLock { state in
            state.number += 1
            return state.number
        }
    }

    /// Adds one to a counter of the report.
    func count(_ what: String) { counts.withLock { $0[what, default: 0] += 1 } }

    /// The counters by name.
    var tally: [String: Int] { counts.withLock { $0 } }

    /// A device's name in the history. Tenants have devices of the same names.
    static func name(_ instance: String, _ device: String) -> String { "\(instance)/\(device)" }

    /// The channel of a Sync ID.
    ///
    /// - Parameter target: the user id, or the device id.
    static func target(_ instance: String, _ kind: Kind, _ target: String) -> HistoryTarget {
        let named =
            switch kind.kind {
            case .user: target
            case .device: name(instance, target)
            case .globalUser, .globalDevice: ""
            }
        return HistoryTarget(instance: instance, kind: kind.kind, target: named, bizType: kind.bizType)
    }

    /// Control file with the tenants and their Sync IDs, for `mssctl apply`.
    func controlFile() -> String {
        let instances = Self.instances.map {
            #"{"instanceId":"\#($0)","name":"Torture","validatorUrl":"\#(stack.tenantURL)","#
                + #""relayUrl":"\#(stack.operationsURL)","verdictLifetimeSeconds":60}"#
        }
        let configurations = Self.instances.flatMap { instance in
            let strange = Self.isForged(instance) ? Self.solo : Self.checkedSolo
            let orders = Kind(bizType: Self.orders, kind: .user, control: Self.chat.control)
            return (Self.kinds.filter { $0.bizType != strange.bizType } + [orders]).map { kind in
                #"{"instanceId":"\#(instance)","bizType":"\#(kind.bizType)","description":"","#
                    + #""multiDevice":\#(kind.isMultiDevice),\#(kind.control)}"#
            }
        }
        return #"{"instances":[\#(instances.joined(separator: ","))],"#
            + #""configurations":[\#(configurations.joined(separator: ","))]}"#
    }
}
