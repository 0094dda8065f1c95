import BusMessages
package import SyncModel

/// How an oplog stands, or would stand, with its receivers: the members that trace and dry run add to an answer.
package struct TraceAnswer: Hashable, Sendable {
    /// One device.
    package struct Receiver: Hashable, Sendable {
        package var deviceID: String
        package var state: DeliveryState
        package var isConnected: Bool
        /// When the state began.
        package var at: WallTime?
        package var handedOutAt: WallTime?
        /// How often the app was given it; 0: the device did not say.
        package var attempts: Int
        package var syncPoint: OplogID
        package var confirmedAt: WallTime?

        /// The state in words, with times and counts.
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
    /// For everybody, so that no list of devices is known.
    package var isGlobal = false
    package var thirdMessageID: String?
    package var acceptedAt: WallTime?
    package var validUntil: WallTime?
    package var recalledAt: WallTime?
    /// The one that says most: of several devices the one that is furthest along.
    package var state: DeliveryState
    package var receivers: [Receiver]
    package var counts: [(state: DeliveryState, devices: Int64)]

    package static func == (left: TraceAnswer, right: TraceAnswer) -> Bool {
        left.json == right.json
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(json) }

    /// Reads what the store answered; nil when a newer store speaks of states that this build does not know.
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

    /// The answer of one that stands with nobody yet.
    init(isDryRun: Bool, state: DeliveryState) {
        self.isDryRun = isDryRun
        self.state = state
        receivers = []
        counts = []
    }

    /// What stands in the way, or that nothing does.
    package var detail: String {
        guard receivers.isEmpty, counts.isEmpty, state == .notConnected else { return state.sentence }
        if isGlobal {
            return "No device that it is for is connected; each gets it when it connects, while it is valid."
        }
        return "No device that it is for has ever connected; it goes to the first that does, while it is valid."
    }

    /// The members as JSON text, each with a comma before it.
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
    /// How far along it is: the state of the device that is furthest says most about an oplog.
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
