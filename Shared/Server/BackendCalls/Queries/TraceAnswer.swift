import BusMessages
import ServiceKit
package import SyncModel

/// The states of an oplog's receivers: the members that a delivery trace or a dry run adds to a response.
package struct TraceAnswer: Hashable, Sendable {
    /// One device.
    package struct Receiver: Hashable, Sendable {
        package var deviceID: String
        package var state: DeliveryState
        package var isConnected: Bool
        /// The begin of the state.
        package var at: WallTime?
        package var handedOutAt: WallTime?
        /// The number of hand-outs to the app; 0 if the device did not report it.
        package var attempts: Int
        package var syncPoint: OplogID
        package var confirmedAt: WallTime?

        /// The state as a sentence, with times and counts.
        package var detail: String {
            var text = state.sentence
            if let handedOutAt, state != .delivered { text += " It was handed out at \(handedOutAt.text)." }
            if attempts > 1 { text += " The app was given it \(attempts) times." }
            if let at, state == .delivered || state == .expired || state == .dead || state == .recalled {
                text += " That was at \(at.text)."
            }
            return text
        }
    }

    package var isDryRun = false
    /// A global push; it has no list of devices.
    package var isGlobal = false
    package var thirdMessageID: String?
    package var acceptedAt: WallTime?
    package var validUntil: WallTime?
    package var recalledAt: WallTime?
    /// The most advanced state of all receivers.
    package var state: DeliveryState
    package var receivers: [Receiver]
    package var counts: [(state: DeliveryState, devices: Int64)]

    package static func == (left: TraceAnswer, right: TraceAnswer) -> Bool {
        left.json == right.json
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(json) }

    /// Reads the store's reply; nil for states of a newer store that this build does not know.
    init?(_ reply: Mss_Bus_V1_TraceReply, isDryRun: Bool, isGlobal: Bool) {
        func state(_ raw: Int32) -> DeliveryState? { DeliveryState(rawValue: Int(raw)) }
        func time(_ milliseconds: Int64) -> WallTime? {
            milliseconds == 0 ? nil : WallTime(milliseconds: milliseconds)
        }
        receivers = reply.receivers.compactMap { receiver in
            state(receiver.state).map {
                Receiver(
                    deviceID: receiver.deviceID, state: $0, isConnected: receiver.connected, at: time(receiver.atMs),
                    handedOutAt: time(receiver.handedOutAtMs), attempts: Int(receiver.attempts),
                    syncPoint: OplogID(receiver.syncPoint), confirmedAt: time(receiver.confirmedAtMs))
            }
        }
        counts = reply.counts.compactMap { count in state(count.state).map { ($0, count.devices) } }
        guard let base = state(reply.state) else { return nil }
        let states = receivers.map(\.state) + counts.map(\.state)
        self.state = states.max { $0.progress < $1.progress } ?? base
        self.isDryRun = isDryRun
        self.isGlobal = isGlobal
        guard !isDryRun else { return }
        thirdMessageID = reply.oplog.thirdMessageID
        acceptedAt = time(reply.oplog.createdAtMs)
        validUntil = time(reply.oplog.validUntilMs)
        recalledAt = time(reply.recalledAtMs)
    }

    /// The answer for an oplog without receivers.
    init(isDryRun: Bool, state: DeliveryState) {
        self.isDryRun = isDryRun
        self.state = state
        receivers = []
        counts = []
    }

    /// The reason for the state, as a sentence.
    package var detail: String {
        guard receivers.isEmpty, counts.isEmpty, state == .notConnected else { return state.sentence }
        if isGlobal {
            return "No device that it is for is connected; each gets it when it connects, while it is valid."
        }
        return "No device that it is for has ever connected; it goes to the first that does, while it is valid."
    }

    /// The members as JSON text; each begins with a comma.
    var json: String {
        var text = isDryRun ? ",\"dryRun\":true" : ""
        if let thirdMessageID {
            text += ",\"thirdMsgId\":"
            text.appendJSONString(thirdMessageID)
        }
        text += Self.member("acceptedAt", acceptedAt) + Self.member("validUntil", validUntil)
        text += Self.member("recalledAt", recalledAt)
        if !isDryRun { text += ",\"state\":\"\(state.code)\"" }
        text += ",\"receivers\":[\(receivers.map(Self.json).joined(separator: ","))]"
        if !counts.isEmpty {
            let counts = counts.map { count in
                var entry = "{\"state\":\"\(count.state.code)\",\"count\":\(count.devices),\"detail\":"
                entry.appendJSONString(count.state.sentence)
                return entry + "}"
            }
            text += ",\"counts\":[\(counts.joined(separator: ","))]"
        }
        return text
    }

    private static func json(_ receiver: Receiver) -> String {
        var text = "{\"deviceId\":"
        text.appendJSONString(receiver.deviceID)
        text += ",\"state\":\"\(receiver.state.code)\",\"detail\":"
        text.appendJSONString(receiver.detail)
        text += ",\"connected\":\(receiver.isConnected)"
        text += member("at", receiver.at) + member("handedOutAt", receiver.handedOutAt)
        if receiver.attempts > 0 { text += ",\"attempts\":\(receiver.attempts)" }
        if receiver.syncPoint > .zero { text += ",\"storedUpTo\":\(receiver.syncPoint.value)" }
        return text + member("confirmedAt", receiver.confirmedAt) + "}"
    }

    private static func member(_ name: String, _ time: WallTime?) -> String {
        time.map { ",\"\(name)\":\($0.milliseconds)" } ?? ""
    }
}

extension DeliveryState {
    /// Rank of a state on the way to the app. The most advanced device describes the oplog best.
    fileprivate var progress: Int {
        switch self {
        case .delivered: 9
        case .stored: 8
        case .handedOut: 7
        case .onItsWay: 6
        case .sessionNotValid, .waitsForForeground, .configurationOffline, .instanceDisabled, .suspended: 5
        case .dead: 4
        case .notConnected: 3
        case .recalled, .overThreshold, .filteredBySystem, .filteredByVersion, .expired: 2
        case .notOwner, .notPersisted, .outsideStage: 1
        }
    }
}
