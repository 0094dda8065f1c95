import BusMessages
import Credentials
import Crypto
import DeliveryHistory
import DeviceProtocol
import Foundation
import SwiftProtobuf
import SyncModel

@testable import Gateway

/// One session with random events from a seed: unrequested replies, frames out of order, changes of configurations and
/// lease. It records the events in each state and the violations of rules.
struct SessionWalk {
    /// The phase of a session, and whether it waits for a registration.
    enum State: String, CaseIterable {
        case awaitingConnect, proving, opening, open, registering, closed
    }

    /// An event without its content. A frame has the name of its body.
    enum Name: Hashable {
        case frame(String)
        case other(Other)

        static let all = SessionWalk.bodies.map { Name.frame($0.name) } + Other.allCases.map { Name.other($0) }
    }

    enum Other: String, CaseIterable {
        case brokenFrame, overRate, disconnected, claimed, notClaimed, registered, notRegistered, validated,
            notValidated, fetched, notFetched, historyRead, historyNotRead, summaryRead, summaryNotRead, resendRecorded,
            operationsAnswered, operationsNotAnswered, parametersKept, parametersNotKept, noticed, superseded,
            rereadWaiting, invalidated, revoked,
            disconnectedByOperator, registrationDue,
            contextChanged, roomGrew, ticked, surplus, drained
    }

    struct Pair: Hashable {
        let state: State
        let event: Name
    }

    private static let key = SymmetricKey(size: .bits256)
    /// Sync IDs with their channels.
    private static let channels: [(bizType: String, kind: SyncModel.ChannelKind, id: Int64)] = [
        ("B", .user, 3), ("C", .user, 4), ("O", .user, 5), ("D", .device, 6), ("N", .globalUser, 7),
        ("G", .globalDevice, 8), ("F", .user, 9), ("V", .user, 10),
    ]
    /// The channels with a session check.
    private static let checked: Set<Int64> = [4, 10]
    /// Single-device channels, with one sync point for all devices of the user, which the owner moves.
    private static let shared: Set<Int64> = [5, 10]
    /// A position that no device has.
    private static let farthest: Int64 = (1 << 53) - 1
    /// The connection epoch in every reply to a registration.
    private static let connectionEpoch: Int64 = 7
    /// Every body of a frame, and a frame without a body.
    static let bodies: [(name: String, fill: @Sendable (inout Mss_Device_V1_Packet) -> Void)] = [
        ("connect", { $0.connect.protocolVersion = 1 }), ("connected", { $0.connected.heartbeatSeconds = 1 }),
        ("bind", { $0.bind.userID = "u" }), ("bindResult", { $0.bindResult.accepted = true }),
        ("push", { $0.push.batches = [] }), ("storedAck", { $0.storedAck.channels = [] }),
        ("confirmReport", { $0.confirmReport.reportID = 1 }), ("confirmRecorded", { $0.confirmRecorded.reportID = 1 }),
        ("caughtUp", { $0.caughtUp.bindNumber = 1 }), ("sessionState", { $0.sessionState.bindNumber = 1 }),
        ("foreground", { $0.foreground.foreground = true }), ("ping", { $0.ping.number = 1 }),
        ("pong", { $0.pong.number = 1 }), ("close", { $0.close.code = 1_000 }),
        ("subscriptions", { $0.subscriptions.suspended = [] }), ("historyRequest", { $0.historyRequest.count = 1 }),
        ("historyPage", { $0.historyPage.requestNumber = 1 }),
        ("summaryRequest", { $0.summaryRequest.requestNumber = 1 }),
        ("summaryPage", { $0.summaryPage.requestNumber = 1 }),
        ("submitOperations", { $0.submitOperations.number = 1 }),
        ("operationsTaken", { $0.operationsTaken.number = 1 }),
        ("keepParameters", { $0.keepParameters.number = 1 }), ("parametersKept", { $0.parametersKept.number = 1 }),
        ("userParameters", { $0.userParameters.bindNumber = 1 }),
        ("ownershipTaken", { $0.ownershipTaken.bindNumber = 1 }),
        ("none", { $0.body = nil }),
    ]
    /// Events that usually end a session. They are drawn less often.
    private static let ending: Set<Name> = Set(
        [Other.brokenFrame, .overRate, .disconnected, .surplus, .drained, .disconnectedByOperator, .superseded].map(
            Name.other)
            + [.frame("connect"), .frame("close")])

    private var random: SeededGenerator
    private var bench: SessionBench
    private(set) var met: Set<Pair> = []
    private(set) var faults: [String] = []
    private var isSimple = false
    /// Whether mostly time and records follow a hand-out.
    private let isQuiet: Bool
    private var bindNumber: UInt32 = 0
    private var heads: [Int64: Int64] = [:]
    /// The last id that was sent on each channel since the last bind.
    private var pushed: [Int64: Int64] = [:]
    private var lastBatch: Mss_Device_V1_ChannelBatch?
    private var lastRequest: UInt64 = 0
    private var operationsNumber: UInt32 = 0
    private var parametersNumber: UInt32 = 0
    /// The number of the frame of operations at the relay.
    private var submitted: UInt32?
    /// The number of the frame of operations that waits for a verdict.
    private var heldOperations: UInt32?
    private var lastResend: (channelID: Int64, oplogID: OplogID, repeats: Int)?
    /// Whether the app requested the current bind.
    private var isRequested = false
    /// Whether a registration since the last bind reported that the device owns the user.
    private var mayOwn = false
    /// The newest connection epoch of the device that the session received before it opened.
    private var newestConnection: Int64 = 0

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        isQuiet = Int.random(in: 0..<20, using: &random) == 0
        bench = SessionBench(
            Self.channels.map { bizType, kind, channelID in
                var configuration = SessionBench.configuration(
                    bizType, kind: kind, multiDevice: !Self.shared.contains(channelID),
                    checks: Self.checked.contains(channelID), repush: bizType == "B" ? .threshold(10) : .all)
                if bizType == "F" {
                    configuration.isFiltered = true
                    configuration.subscription = SubscriptionText(parameters: "p number")
                }
                return configuration
            })
        var limits = SessionLimits()
        limits.windowBytes = 40
        limits.firstResend = .milliseconds(50)
        bench.machine = SessionStateMachine(limits: limits, now: bench.now)
        if Bool.random(using: &random) {
            bench.instance.requiresSignature = true
            bench.instance.keys = [
                AppKey(
                    id: "k", purpose: .device, sealedSecret: [], limits: KeyLimits(),
                    createdAt: WallTime(milliseconds: 0))
            ]
            bench.secrets = ["k": Self.key]
        }
    }

    private var state: State {
        switch bench.machine.stage {
        case .awaitingConnect: .awaitingConnect
        case .proving: .proving
        case .connected where bench.machine.isOpening: .opening
        case .connected: bench.machine.isRegistering ? .registering : .open
        case .closed: .closed
        }
    }

    private mutating func happens(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    /// Performs this number of steps, and a few after the end of the session.
    mutating func walk(steps: Int) {
        var afterEnd = 0
        for _ in 0..<steps where afterEnd < 10 {
            changeWorld()
            let name = draw()
            met.insert(Pair(state: state, event: name))
            let before = state
            let event = event(name)
            let actions = bench.handle(event)
            check(actions, of: name, before: before)
            bench.machine.write(actions, at: bench.now)
            follow(actions)
            if state == .closed { afterEnd += 1 }
        }
    }

    private mutating func changeWorld() {
        bench.now += .milliseconds(Int.random(in: 0...2_000, using: &random))
        if happens(5) { bench.holdsLease.toggle() }
        if happens(3) { bench.leaseEpoch += 1 }
        if happens(1) { bench.configurations[BizType("F")]?.subscription.attributes += " " }
        if happens(3), let bizType = Self.channels.randomElement(using: &random)?.bizType {
            bench.configurations[BizType(bizType)]?.isOnline.toggle()
        }
    }

    private mutating func draw() -> Name {
        // Replies that the session waits for are the most frequent events.
        if happens(50) {
            switch state {
            case .awaitingConnect: return .frame("connect")
            case .proving: return .other(.claimed)
            case .opening, .registering: return .other(.registered)
            case .open, .closed: break
            }
        }
        if isQuiet, lastBatch != nil, state == .open, happens(80) {
            return .other(lastResend == nil ? .ticked : .resendRecorded)
        }
        while true {
            let name = Name.all[Int.random(in: Name.all.indices, using: &random)]
            // Few walks are in this state, and only briefly.
            if !Self.ending.contains(name) || state == .proving || happens(10) { return name }
        }
    }

    // MARK: Events

    private mutating func event(_ name: Name) -> SessionEvent {
        switch name {
        case .frame(let body): .frame(packet(body))
        case .other(let other): event(other)
        }
    }

    private mutating func event(_ name: Other) -> SessionEvent {
        let channel = Self.channels[Int.random(in: Self.channels.indices, using: &random)]
        switch name {
        case .brokenFrame: return .brokenFrame(reason: "broken")
        case .overRate: return .overRate(RateRefusal(code: .tooManyFrames, reason: "too many"))
        case .disconnected: return .disconnected
        case .claimed: return .claimed(happens(90))
        case .notClaimed: return .claimed(nil)
        case .registered: return .registered(registration(), bindNumber: happens(90) ? bindNumber : 0)
        case .notRegistered: return .registered(nil, bindNumber: bindNumber)
        case .validated, .notValidated:
            let verdict: Mss_Bus_V1_Verdict = happens(70) ? .valid : .invalid
            return .validated(
                name == .validated ? .with { $0.verdict = verdict } : nil, bindNumber: bindNumber,
                askedAt: bench.now - .milliseconds(100))
        case .fetched:
            return .fetched(
                page(of: channel.id), channelID: channel.id, bindNumber: happens(90) ? bindNumber : 0)
        case .notFetched: return .fetched(nil, channelID: channel.id, bindNumber: bindNumber)
        case .historyRead:
            return .historyRead(.with { $0.entries = [SessionBench.oplog(1).bus] }, of: lastRequest)
        case .historyNotRead: return .historyRead(nil, of: lastRequest)
        case .summaryRead: return .summaryRead(.with { $0.channels = [] }, of: lastRequest)
        case .summaryNotRead: return .summaryRead(nil, of: lastRequest)
        case .resendRecorded:
            let resend = lastResend ?? (channel.id, OplogID(1), 1)
            lastResend = nil
            return .resendRecorded(channelID: resend.channelID, oplogID: resend.oplogID, repeats: resend.repeats)
        case .operationsAnswered: return .operationsAnswered(.init(), number: submitted ?? 1)
        case .operationsNotAnswered: return .operationsAnswered(nil, number: submitted ?? 1)
        case .parametersKept: return .parametersKept(true, number: parametersNumber)
        case .parametersNotKept: return .parametersKept(false, number: parametersNumber)
        case .noticed: return .noticed(notice(of: channel))
        case .superseded:
            let epoch: Int64 = happens(50) ? 1 : .max
            if state == .opening { newestConnection = max(newestConnection, epoch) }
            return .superseded(by: epoch)
        case .rereadWaiting: return .rereadWaiting
        case .invalidated:
            return .invalidated(UserID("u"), digest: bench.machine.identity?.sessionDigest ?? [], reason: "ended")
        case .revoked: return .revoked(UserID("u"), digest: [])
        case .disconnectedByOperator: return .disconnectedByOperator
        case .registrationDue: return .registrationDue
        case .contextChanged: return .contextChanged
        case .roomGrew: return .roomGrew
        case .ticked: return .ticked
        case .surplus: return .surplus
        case .drained: return .drained
        }
    }

    private mutating func packet(_ body: String) -> Mss_Device_V1_Packet {
        switch body {
        case "connect": return connect()
        case "bind":
            bindNumber += 1
            let bind = bind()
            return .with { $0.bind = bind }
        case "storedAck":
            if let ack = storedAck() { return ack }
        case "confirmReport": return confirmReport()
        case "foreground":
            let isForeground = Bool.random(using: &random)
            return .with { $0.foreground.foreground = isForeground }
        case "subscriptions":
            let suspended = happens(50) ? ["B"] : []
            let value = happens(50) ? "1" : "2"
            return .with {
                $0.subscriptions.suspended = suspended
                $0.subscriptions.parameters = [Self.parameter(value)]
            }
        case "historyRequest":
            return .with {
                $0.historyRequest.requestNumber = 1
                $0.historyRequest.bizType = "B"
                $0.historyRequest.bindNumber = bindNumber
                $0.historyRequest.count = 5
            }
        case "summaryRequest":
            return .with {
                $0.summaryRequest.requestNumber = 2
                $0.summaryRequest.bindNumber = bindNumber
            }
        case "submitOperations":
            // A device waits for the answer, mostly.
            if submitted == nil || happens(2) { operationsNumber += 1 }
            let number = happens(80) ? bindNumber : bindNumber + 1
            return .with {
                $0.submitOperations.number = operationsNumber
                $0.submitOperations.bindNumber = number
                $0.submitOperations.operations = [.with { $0.operationID = "o\(operationsNumber)" }]
            }
        case "keepParameters":
            // A device waits for the answer, mostly.
            if !bench.machine.isKeeping || happens(2) { parametersNumber += 1 }
            let number = happens(80) ? bindNumber : bindNumber + 1
            let value = happens(80) ? "1" : "\"text\""
            return .with {
                $0.keepParameters.number = parametersNumber
                $0.keepParameters.bindNumber = number
                $0.keepParameters.parameters = [Self.parameter(value)]
            }
        default: break
        }
        return Self.bodies.first { $0.name == body }.map { Mss_Device_V1_Packet.with($0.fill) } ?? .init()
    }

    private func storedAck() -> Mss_Device_V1_Packet? {
        guard let batch = lastBatch else { return nil }
        return .with {
            $0.storedAck.rereads = batch.reread > 0 ? [batch.reread] : []
            $0.storedAck.channels = [
                .with {
                    $0.kind = batch.kind
                    $0.bizType = batch.bizType
                    $0.bindNumber = batch.bindNumber
                    $0.upto = batch.upto
                }
            ]
        }
    }

    /// A confirmation of an oplog of a user's channel, which the device may never have been sent.
    private mutating func confirmReport() -> Mss_Device_V1_Packet {
        let bizType = ["B", "C", "O", "V"][Int.random(in: 0..<4, using: &random)]
        let number = happens(80) ? bindNumber : bindNumber + 1
        return .with {
            $0.confirmReport.reportID = 1
            $0.confirmReport.channels = [
                .with {
                    $0.bizType = bizType
                    $0.bindNumber = number
                    $0.oplogIds = [1]
                }
            ]
        }
    }

    /// The current bind. Some devices report positions that they never had.
    private mutating func bind() -> Mss_Device_V1_Bind {
        let claimed = happens(30) ? ["C", "O", "V"] : []
        let isRequested = happens(50)
        (self.isRequested, mayOwn) = (isRequested, false)
        return .with {
            $0.bindNumber = bindNumber
            $0.userID = "u"
            $0.sessionID = "session-\(bindNumber)"
            $0.requestedByApp = isRequested
            $0.syncPoints = claimed.map { bizType in
                .with {
                    $0.bizType = bizType
                    $0.oplogID = Self.farthest
                }
            }
        }
    }

    private static func parameter(_ value: String) -> Mss_Device_V1_Parameter {
        .with {
            $0.bizType = "F"
            $0.name = "p"
            $0.value = value
        }
    }

    private mutating func connect() -> Mss_Device_V1_Packet {
        if state == .awaitingConnect { (bindNumber, isSimple) = (1, happens(30)) }
        var connect = Mss_Device_V1_Connect()
        connect.protocolVersion = 1
        connect.instanceID = "i"
        connect.deviceID = "d"
        connect.storeID = "s"
        connect.simple = isSimple
        connect.bind = bind()
        if bench.instance.requiresSignature {
            connect.signature.keyID = "k"
            connect.signature.timestampMs = bench.wallTime.milliseconds
            connect.signature.nonce = Data(repeating: 1, count: 16)
            connect.signature.mac = Data(ConnectSignature.mac(of: connect.signedParts, by: Self.key))
        }
        return .with { $0.connect = connect }
    }

    private static func target(_ kind: SyncModel.ChannelKind) -> TargetAddress {
        let target = kind == .user ? "u" : kind == .device ? "d" : ""
        return TargetAddress(instanceID: SessionBench.instance.id, kind: kind, target: target)
    }

    private mutating func registration() -> Mss_Bus_V1_SessionReply {
        let (isLost, isStrange) = (happens(5), happens(1))
        let hasReread = happens(20)
        let owner = happens(80)
        if owner { mayOwn = true }
        let states = Self.channels.map { channel in
            Mss_Bus_V1_ChannelState.with {
                $0.channelID = channel.id
                $0.target = Self.target(channel.kind).bus
                $0.bizType = channel.bizType
                $0.head = heads[channel.id, default: 3]
                if channel.bizType == "F" { $0.filters = [.with { $0.filter = "" }] }
            }
        }
        return .with {
            $0.connectionEpoch = Self.connectionEpoch
            $0.leaseLost = isLost
            $0.wrongDeviceSecret = isStrange
            $0.owner = owner
            $0.channels = states
            if hasReread {
                $0.rereads = [
                    .with {
                        $0.rereadID = 1
                        $0.channelID = 3
                        $0.oplog = SessionBench.oplog(1).bus
                    }
                ]
            }
        }
    }

    private mutating func page(of channelID: Int64) -> Mss_Bus_V1_FetchReply {
        let after = pushed[channelID, default: 0]
        let upto = heads[channelID, default: 3]
        return SessionBench.page(after: after, ids: after < upto ? Array(after + 1...upto) : [])
    }

    private mutating func notice(of channel: (bizType: String, kind: SyncModel.ChannelKind, id: Int64)) -> ChannelNotice
    {
        let after = heads[channel.id, default: 3]
        let upto = after + Int64.random(in: 1...3, using: &random)
        heads[channel.id] = upto
        return ChannelNotice(
            channelID: channel.id,
            address: ChannelAddress(target: Self.target(channel.kind), bizType: BizType(channel.bizType)),
            after: OplogID(after), upto: OplogID(upto), entries: (after + 1...upto).map { SessionBench.oplog($0) })
    }

    // MARK: Violations

    private mutating func follow(_ actions: [SessionAction]) {
        for action in actions {
            switch action {
            case .push(let batch, _, let channelID):
                lastBatch = batch
                if batch.reread == 0 { pushed[channelID] = max(pushed[channelID, default: 0], batch.upto) }
            case .readHistory(let read): lastRequest = read.id
            case .readSummary(let read): lastRequest = read.id
            case .submit(let submission): submitted = submission.number
            case .recordResend(let channelID, _, let oplogID, let repeats):
                lastResend = (channelID, oplogID, repeats)
            default: break
            }
        }
        heldOperations = submitted == nil ? bench.machine.submitted?.number : nil
    }

    private mutating func check(_ actions: [SessionAction], of name: Name, before: State) {
        var found: [String] = []
        defer { faults += found.map { "\(name) in \(before): \($0)" } }
        func fault(_ text: String) { found.append(text) }
        if case .frame("bind") = name { pushed = pushed.filter { [6, 8].contains($0.key) } }
        for text in operationFaults(actions, of: name) + writeFaults(actions) { fault(text) }
        if before == .opening, state == .open || state == .registering, newestConnection > Self.connectionEpoch {
            fault("it opens although a newer connection of the device exists")
        }
        let closes = actions.count { if case .close = $0 { true } else { false } }
        if before == .closed, !actions.isEmpty { fault("a closed session did something") }
        if before == .closed, state != .closed { fault("a closed session came back") }
        if closes > 1 { fault("it closed twice") }
        if closes == 1 {
            if case .close? = actions.last {} else { fault("it did something after it closed") }
            if state != .closed { fault("it goes on after it closed") }
        }
        let opens = actions.opens
        if opens > 1 || opens == 1 && before == .registering && !isAnswer(name) { fault("it registers twice at once") }
        if bench.machine.windowUsed < 0 { fault("more is acknowledged than was sent") }
        for action in actions {
            if case .recordResend(_, _, _, let repeats) = action, repeats > Limits.resendRepeats {
                fault("it repeats a batch for the \(repeats)th time")
            }
            guard case .push(let batch, let handedOut, let channelID) = action else { continue }
            let ids = batch.entries.map(\.oplogID)
            if !bench.machine.isOpen && closes == 0 { fault("it hands out in \(state)") }
            if !bench.holdsLease || bench.machine.leaseEpoch != bench.leaseEpoch {
                fault("it hands out without a lease")
            }
            if bench.configurations[BizType(batch.bizType)]?.isOnline != true { fault("\(batch.bizType) is offline") }
            if batch.bindNumber != 0, batch.bindNumber != bindNumber { fault("it hands out for an older bind") }
            if ids != ids.sorted() || Set(ids).count != ids.count { fault("a batch is out of order: \(ids)") }
            if batch.bizType == "F", batch.reread == 0, before == .registering, !isAnswer(name), !isSimple {
                fault("it hands out what a registration under way decides about")
            }
            let isRepeat = batch.reread > 0 || isSimple
            if !isRepeat, let first = handedOut.first, first.value <= pushed[channelID, default: 0] {
                fault("\(first) of \(channelID) goes out after \(pushed[channelID, default: 0])")
            }
        }
    }

    /// Violations of these rules: the relay has at most one frame of operations of the current bind, and each frame has
    /// one answer.
    private mutating func operationFaults(_ actions: [SessionAction], of name: Name) -> [String] {
        var faults: [String] = []
        func fault(_ text: String) { faults.append(text) }
        if case .frame("bind") = name { submitted = nil }
        for action in actions {
            switch action {
            case .submit(let submission):
                if submitted != nil { fault("it submits a second frame") }
                if submission.userID.text != "u" || !bench.machine.isOpen { fault("it submits for nobody") }
                if bench.machine.verdict == .invalid { fault("it submits on an invalid session") }
            case .answer(let packet):
                guard case .operationsTaken(let reply)? = packet.body else { continue }
                let isRelay = [.other(.operationsAnswered), .other(.operationsNotAnswered)].contains(name)
                let isAwaited = submitted == reply.number || !isRelay && heldOperations == reply.number
                if case .other = name, !isAwaited { fault("it answers \(reply.number)") }
                if submitted == reply.number { submitted = nil }
            default: break
            }
        }
        return faults
    }

    /// Violations of the rule that a device's write for a user needs the conditions of a hand-out (D8, D16).
    private func writeFaults(_ actions: [SessionAction]) -> [String] {
        var faults: [String] = []
        let isOnRecord = bench.holdsLease && bench.machine.leaseEpoch == bench.leaseEpoch
        func check(_ text: String, isChecked: Bool = true, isShared: Bool = false) {
            if !isOnRecord { faults.append("\(text) without a lease") }
            if isChecked, !hasValidVerdict { faults.append("\(text) without a valid verdict") }
            if isShared, !mayOwn { faults.append("\(text) for a device that owns no user") }
        }
        func checkChannel(_ text: String, _ channelID: Int64) {
            // Device channels belong to no user.
            guard Self.channels.first(where: { $0.id == channelID })?.kind.needsUser != false else { return }
            check(
                "\(text) of \(channelID)", isChecked: Self.checked.contains(channelID),
                isShared: Self.shared.contains(channelID))
        }
        for action in actions {
            switch action {
            case .record(let channelID, _, _, let upto):
                checkChannel("it records a position", channelID)
                if Self.shared.contains(channelID), upto.value > pushed[channelID, default: 0] {
                    faults.append("it records \(upto.value) of \(channelID), of which it has sent less")
                }
            case .recordResend(let channelID, _, _, _): checkChannel("it records a repeat", channelID)
            case .confirm(let report):
                for channelID in report.confirmed.keys { checkChannel("it records a confirmation", channelID) }
            case .finishReread: checkChannel("it records a re-read", Self.channels[0].id)
            case .submit: check("it submits operations")
            case .keepParameters: check("it has parameters kept")
            default: break
            }
        }
        if actions.ownershipRequests > 0 {
            if !hasValidVerdict { faults.append("it takes ownership without a valid verdict") }
            if !isRequested { faults.append("it takes ownership, and the app did not ask for it") }
        }
        return faults
    }

    /// Whether the last verdict is valid and nothing has ended it since.
    private var hasValidVerdict: Bool { if case .valid = bench.machine.verdict { true } else { false } }

    private func isAnswer(_ name: Name) -> Bool {
        [.other(.registered), .other(.notRegistered), .other(.ticked), .frame("bind")].contains(name)
    }
}
