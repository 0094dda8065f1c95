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
    }

    static let instances = (1...4).map { "torture-\($0)" }
    static let devicesPerUser = 2
    /// How old a verdict may be that checked data goes out on.
    static let verdictSeconds = 5
    static let chat = Kind(
        bizType: "CHAT", kind: .user, control: #""scope":"appointed","target":"user","repush":"all""#)
    static let checked = Kind(
        bizType: "CHECKED", kind: .user,
        control: #""scope":"appointed","target":"user","repush":"all","checkSession":true,"verdictLifetimeSeconds":"#
            + "\(verdictSeconds)")
    static let lock = Kind(
        bizType: "LOCK", kind: .device, control: #""scope":"appointed","target":"device","repush":"all""#)
    static let news = Kind(
        bizType: "NEWS", kind: .globalDevice,
        control: #""scope":"global","target":"device","repush":100,"immediate":true"#)
    static let kinds = [chat, checked, lock, news]
    /// What devices' operations are done to; the tenant's new states come under it too.
    static let orders = "ORDER"

    let stack: TortureStack
    let history: TortureHistory
    let devicesPerInstance: Int
    private let state = Mutex((phase: Phase.gathering, number: 0, present: 0))
    private let counts = Mutex<[String: Int]>([:])
    /// What the client of a device said last, and when.
    private let lastWords = Mutex<[String: (text: String, at: Duration)]>([:])

    /// - Parameter devices: in all; a multiple of tenants and devices per user.
    init(stack: TortureStack, history: TortureHistory, devices: Int) {
        self.stack = stack
        self.history = history
        devicesPerInstance = devices / Self.instances.count
    }

    var usersPerInstance: Int { devicesPerInstance / Self.devicesPerUser }

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
            (Self.kinds.map { ($0.bizType, $0.control) } + [(Self.orders, Self.chat.control)]).map { name, control in
                #"{"instanceId":"\#(instance)","bizType":"\#(name)","description":"","multiDevice":true,"#
                    + "\(control)}"
            }
        }
        return #"{"instances":[\#(instances.joined(separator: ","))],"#
            + #""configurations":[\#(configurations.joined(separator: ","))]}"#
    }
}
