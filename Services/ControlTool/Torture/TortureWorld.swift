import AsyncHTTPClient
import DeliveryHistory
import Foundation
import SyncModel
import Synchronization

/// Who there is in a torture run, and what they all share: tenants with users and devices of the same names, so that
/// data which goes to another tenant's shows.
final class TortureWorld: Sendable {
    /// How far the run is.
    enum Phase: Sendable {
        /// Devices come.
        case gathering
        /// Backends push, devices die, sessions end.
        case loaded
        /// Everything that was answered must come where it belongs.
        case draining
        case over
    }

    /// What a Sync ID of the run is for.
    struct Kind: Sendable {
        let bizType: String
        let kind: ChannelKind
        let control: String
        var isMultiDevice = true
    }

    static let instances = (1...4).map { "torture-\($0)" }
    static let devicesPerUser = 2
    /// A device goes by the clock that it was told when it connected; its process ends within this time.
    private static let clockMemory = TortureDevice.longestLife + .seconds(10)
    /// How old a verdict may be that checked data goes out on.
    static let verdictSeconds = 5
    static let chat = Kind(
        bizType: "CHAT", kind: .user, control: #""scope":"appointed","target":"user","repush":"all""#)
    /// Has a filter that lets everything pass, unless the user keeps a parameter that no app of the run sets.
    static let checked = Kind(
        bizType: "CHECKED", kind: .user,
        control: #""scope":"appointed","target":"user","repush":"all","checkSession":true,"verdictLifetimeSeconds":"#
            + #"\#(verdictSeconds),"attributes":"level number","parameters":"least number = 0","#
            + #""filter":"level >= $least""#)
    /// For one device of a user.
    static let solo = Kind(
        bizType: "SOLO", kind: .user, control: #""scope":"appointed","target":"user","repush":"all""#,
        isMultiDevice: false)
    /// The same with the session check.
    static let checkedSolo = Kind(
        bizType: "CHECKED-SOLO", kind: .user,
        control: #""scope":"appointed","target":"user","repush":"all","checkSession":true,"verdictLifetimeSeconds":"#
            + "\(verdictSeconds)", isMultiDevice: false)
    /// Goes to devices that are there, and is stored nowhere.
    static let live = Kind(
        bizType: "LIVE", kind: .user, control: #""scope":"appointed","target":"user","persistent":false"#)
    static let lock = Kind(
        bizType: "LOCK", kind: .device, control: #""scope":"appointed","target":"device","repush":"all""#)
    static let news = Kind(
        bizType: "NEWS", kind: .globalDevice,
        control: #""scope":"global","target":"device","repush":100,"immediate":true"#)
    static let kinds = [chat, checked, solo, checkedSolo, live, lock, news]
    /// The level that every checked push has: the filter's parameter is lower.
    static let level = 5
    /// Instances in which devices with made-up sessions bind users; their single-device data is checked. In the others
    /// it is not, since a stranger may bind a user there.
    static func isForged(_ instance: String) -> Bool { instances.prefix(2).contains(instance) }
    /// Which single-device Sync ID an instance has.
    static func solo(in instance: String) -> Kind { isForged(instance) ? checkedSolo : solo }
    /// What devices' operations are done to; the tenant's new states come under it too.
    static let orders = "ORDER"

    let stack: TortureStack
    let history: TortureHistory
    let devicesPerInstance: Int
    let api: TortureAPI
    let ledger = TorturePushLedger()
    private let wishes = Mutex<[Burst]>([])
    /// When no device can have learned the database's wrong clock any more; nil: it is right, or wrong now.
    private let clockRightAt = Mutex<Duration?>(nil)
    private let state = Mutex((phase: Phase.gathering, number: 0, present: 0))
    private let counts = Mutex<[String: Int]>([:])
    /// What the client of a device said last, and when.
    private let lastWords = Mutex<[String: (text: String, at: Duration)]>([:])

    /// - Parameter devices: in all; a multiple of tenants and devices per user.
    init(stack: TortureStack, history: TortureHistory, devices: Int) {
        self.stack = stack
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 200
        api = TortureAPI(
            client: HTTPClient(eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: configuration),
            ports: stack.apis)
        self.history = history
        devicesPerInstance = devices / Self.instances.count
    }

    var usersPerInstance: Int { devicesPerInstance / Self.devicesPerUser }

    /// Users whom devices that keep to no rule may bind with a session that the tenant calls valid; the others' data
    /// goes to honest devices alone where the tenant is asked.
    static func isShared(_ user: Int) -> Bool { user.isMultiple(of: 2) }

    /// Users of each instance who have an MQTT device too, and batches of their own: the first of the shared ones.
    var busyUsers: [Int] { (0..<max(1, devicesPerInstance / 40)).map { $0 * 2 }.filter { $0 < usersPerInstance } }

    /// Pushes that a device wants to be sent, to see what becomes of them.
    struct Burst: Sendable {
        let target: HistoryTarget
        let count: Int
        /// Nil: they are not recalled.
        let recallAfter: Duration?
    }

    /// Asks the backends for pushes.
    func want(_ burst: Burst) { wishes.withLock { $0.append(burst) } }

    /// Gives the backends what is asked for.
    func takeWishes() -> [Burst] {
        wishes.withLock { wishes in
            defer { wishes = [] }
            return wishes
        }
    }

    /// Ends a session at the tenant, and returns once no checked data may go out on it.
    ///
    /// - Parameter isRevoking: the tenant revokes the session, which holds at once; otherwise, and when the service
    ///   does not confirm that, the verdict's lifetime has to pass.
    /// - Returns: false when the tenant could not be told.
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

    // MARK: Faults that concern what is owed

    /// A fault begins.
    func beginDisturbance(by fault: FaultSchedule.Planned) {
        if fault.kind == .clockJump(.database) {
            clockRightAt.withLock { $0 = nil }
            setDatabaseClock(isRight: false)
        }
        if fault.kind.maySpoilSessions { history.observe(PresenceEvent.disturbed) }
    }

    /// A round of faults has healed, and what was pushed before has arrived.
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

    /// Devices that have all that waited for them.
    var present: Int { state.withLock { $0.present } }

    /// A device has come, or is away.
    func notePresence(_ change: Int) { state.withLock { $0.present += change } }

    /// The client of a device says something.
    func note(_ text: String, of device: String) {
        let now = history.elapsed
        lastWords.withLock { $0[device] = (text, now) }
    }

    /// What the client of a device said last, and how long ago.
    func lastNews(of device: String) -> String {
        guard let last = lastWords.withLock({ $0[device] }) else { return "nothing heard" }
        return "\(last.text) \(Int((history.elapsed - last.at) / .seconds(1))) s before"
    }

    /// A number that the run has not used.
    func next() -> Int {
        state.withLock { state in
            state.number += 1
            return state.number
        }
    }

    /// Counts something for the report.
    func count(_ what: String) { counts.withLock { $0[what, default: 0] += 1 } }

    /// What was counted, by its name.
    var tally: [String: Int] { counts.withLock { $0 } }

    /// A device as the history names it; tenants have devices of the same names.
    static func name(_ instance: String, _ device: String) -> String { "\(instance)/\(device)" }

    /// The channel of a Sync ID.
    ///
    /// - Parameter target: the user, or the device's own name.
    static func target(_ instance: String, _ kind: Kind, _ target: String) -> HistoryTarget {
        let named =
            switch kind.kind {
            case .user: target
            case .device: name(instance, target)
            case .globalUser, .globalDevice: ""
            }
        return HistoryTarget(instance: instance, kind: kind.kind, target: named, bizType: kind.bizType)
    }

    /// The tenants and their Sync IDs, as `mssctl apply` takes them.
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
