import BusMessages
import Crypto
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

/// One session with a session context that the test sets, and the actions of the session.
struct SessionBench {
    static let instance = Instance(
        id: InstanceID("i"), name: "i", isEnabled: true, validatorURL: "http://tenant", verdictLifetime: .seconds(600))

    var machine: SessionStateMachine
    var now = ContinuousClock.now
    var holdsLease = true
    var leaseEpoch: Int64 = 1
    var configurations: [BizType: SyncConfiguration] = [:]
    var instance = SessionBench.instance
    /// The secrets of the instance's keys, by key id.
    var secrets: [String: SymmetricKey] = [:]
    var wallTime = WallTime(milliseconds: 1_000)

    init(_ configurations: [SyncConfiguration] = [SessionBench.configuration("B")]) {
        machine = SessionStateMachine(limits: SessionLimits(), now: now)
        for configuration in configurations { self.configurations[configuration.bizType] = configuration }
    }

    static func configuration(
        _ bizType: String, kind: SyncModel.ChannelKind = .user, multiDevice: Bool = true, checks: Bool = false,
        repush: RepushMode = .all, verdictLifetime: Duration? = nil
    ) -> SyncConfiguration {
        SyncConfiguration(
            instanceID: instance.id, bizType: BizType(bizType), description: "", kind: kind, isMultiDevice: multiDevice,
            isPersistent: true, repush: repush, checksSession: checks, isOnline: true, verdictLifetime: verdictLifetime)
    }

    var context: SessionContext {
        let secrets = secrets
        return SessionContext(
            now: now, databaseTime: wallTime, machineTime: wallTime, holdsLease: holdsLease, leaseEpoch: leaseEpoch,
            control: ControlSnapshot(instances: [instance], configurations: Array(configurations.values)),
            functions: SessionContext.Functions(openKey: { key, _ in secrets[key.id] }, random: { 0.5 }))
    }

    /// Sends an event to the session.
    @discardableResult
    mutating func handle(_ event: SessionEvent) -> [SessionAction] {
        let hasNoEffect = if case .ticked = event { !machine.isTickDue(at: now) } else { false }
        let actions = machine.handle(event, in: context)
        #expect(!hasNoEffect || actions.isEmpty, "a gateway leaves this tick out")
        return actions
    }

    /// The outcome of a notice's non-persistent entries.
    mutating func replyEntries(of notice: ChannelNotice) -> NoticeReplyEntries {
        machine.replyEntries(of: notice, in: context)
    }

    /// Lets the second pass on a connection that is not idle.
    mutating func tick() -> [SessionAction] {
        receive { $0.ping.number = 1 }
        return handle(.ticked)
    }

    @discardableResult
    mutating func receive(_ fill: (inout Mss_Device_V1_Packet) -> Void) -> [SessionAction] {
        handle(.frame(.with(fill)))
    }

    /// Connects with user u bound.
    @discardableResult
    mutating func connect(_ more: (inout Mss_Device_V1_Connect) -> Void = { _ in }) -> [SessionAction] {
        receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
            $0.connect.appVersion = "1"
            $0.connect.bind.bindNumber = 1
            $0.connect.bind.userID = "u"
            $0.connect.bind.sessionID = "session"
            more(&$0.connect)
        }
    }

    /// Answers a verdict request that was sent now, or at the given time.
    mutating func answer(
        _ verdict: Mss_Bus_V1_Verdict, sentAt: ContinuousClock.Instant? = nil, joinedAfter: Int64 = 0, bind: UInt32 = 1
    ) -> [SessionAction] {
        let reply = Mss_Bus_V1_ValidateReply.with {
            $0.verdict = verdict
            $0.joinedAfterMs = joinedAfter
        }
        return handle(.validated(reply, bindNumber: bind, askedAt: sentAt ?? now))
    }

    /// Connects with user u bound, and registers with these channels: (bizType, channel id, head, sync point).
    @discardableResult
    mutating func open(
        _ channels: [(String, Int64, Int64, Int64)] = [], _ more: (inout Mss_Device_V1_Connect) -> Void = { _ in }
    ) -> [SessionAction] {
        connect(more)
        return handle(.registered(Self.reply(channels), bindNumber: 1))
    }

    static func reply(_ channels: [(String, Int64, Int64, Int64)], epoch: Int64 = 7) -> Mss_Bus_V1_SessionReply {
        .with {
            $0.connectionEpoch = epoch
            $0.channels = channels.map { bizType, id, head, point in
                .with {
                    $0.channelID = id
                    $0.target = target.bus
                    $0.bizType = bizType
                    $0.head = head
                    $0.syncPoint = point
                }
            }
        }
    }

    static let target = TargetAddress(instanceID: instance.id, kind: .user, target: "u")

    static func notice(
        _ bizType: String, channel: Int64, after: Int64, ids: [Int64], payload: Int = 1, owner: String? = nil,
        targeting: Targeting = .everyone, persistent: Bool = true
    ) -> ChannelNotice {
        ChannelNotice(
            channelID: channel, address: ChannelAddress(target: target, bizType: BizType(bizType)),
            after: OplogID(after), upto: OplogID(ids.last ?? after),
            entries: ids.map { oplog($0, payload: payload, targeting: targeting, persistent: persistent) },
            owner: owner.map { DeviceID($0) })
    }

    static func oplog(
        _ id: Int64, payload: Int = 1, targeting: Targeting = .everyone, persistent: Bool = true
    ) -> Oplog {
        Oplog(
            id: OplogID(id), thirdMessageID: ThirdMessageID("m\(id)"), payload: Array(repeating: 120, count: payload),
            isBinary: false, targeting: targeting, validUntil: WallTime(milliseconds: 2_000),
            createdAt: WallTime(milliseconds: 0), isPersistent: persistent)
    }

    /// - Parameters:
    ///   - upto: the end of the range. A nil value means: the last oplog.
    ///   - awaited: the ids of non-persistent pushes whose outcome is not recorded.
    static func page(
        after: Int64, ids: [Int64], upto: Int64? = nil, more: Bool = false, awaited: [Int64] = []
    ) -> Mss_Bus_V1_FetchReply {
        .with {
            $0.after = after
            $0.upto = upto ?? ids.last ?? after
            $0.awaitedIds = awaited
            $0.entries = ids.map { oplog($0).bus }
            $0.more = more
        }
    }
}

extension [SessionAction] {
    var pushed: [Int64] {
        flatMap { action -> [Int64] in
            if case .push(let batch, _, _) = action { return batch.entries.map(\.oplogID) }
            return []
        }
    }
    var batches: [Mss_Device_V1_ChannelBatch] {
        compactMap { if case .push(let batch, _, _) = $0 { batch } else { nil } }
    }
    var fetches: [(after: Int64, newest: Int)] {
        compactMap { if case .fetch(let page) = $0 { (page.after.value, page.newest) } else { nil } }
    }
    /// The ends of the backlogs for which thresholds count.
    var backlogEnds: [Int64] {
        compactMap { if case .fetch(let page) = $0 { page.newestUpto.value } else { nil } }
    }
    /// The names of frames other than pushes, in order.
    var sent: [String] {
        compactMap { action in
            guard case .send(let packet) = action else { return nil }
            return packet.body.map { String("\($0)".prefix { $0 != "(" }) }
        }
    }
    var closeCode: CloseCode? {
        compactMap { if case .close(let code, _) = $0 { code } else { nil } }.first
    }
    var isCaughtUp: Bool {
        contains { if case .send(let packet) = $0, case .caughtUp? = packet.body { true } else { false } }
    }
    var recorded: [Int64] {
        compactMap { if case .record(_, _, _, let upto) = $0 { upto.value } else { nil } }
    }
    var questions: Int { count { if case .validate = $0 { true } else { false } } }
    var states: [Mss_Device_V1_SessionState] {
        compactMap {
            switch $0 {
            case .send(let packet), .answer(let packet):
                if case .sessionState(let state)? = packet.body { state } else { nil }
            default: nil
            }
        }
    }
    /// The lifetimes of valid verdicts that the session reports to the store.
    var verdicts: [Duration] {
        compactMap { if case .update(_, _, let verdictFor) = $0 { verdictFor } else { nil } }
    }
    var opens: Int { count { if case .open = $0 { true } else { false } } }
    /// The number of registrations with an ownership request of the app.
    var ownershipRequests: Int { count { if case .open(_, _, _, .requested?, _) = $0 { true } else { false } } }
    /// The identities in the registrations.
    var announced: [SessionIdentity] {
        compactMap { if case .open(let identity, _, _, _, _) = $0 { identity } else { nil } }
    }
    var kept: [(parameters: [DeviceParameter], number: UInt32)] {
        compactMap { if case .keepParameters(let parameters, _, let number) = $0 { (parameters, number) } else { nil } }
    }
    var keptAnswers: [Mss_Device_V1_ParametersKept] {
        compactMap {
            if case .answer(let packet) = $0, case .parametersKept(let kept)? = packet.body { kept } else { nil }
        }
    }
    var userParameters: [Mss_Device_V1_UserParameters] {
        compactMap {
            if case .send(let packet) = $0, case .userParameters(let list)? = packet.body { list } else { nil }
        }
    }
    var historyPages: [Mss_Device_V1_HistoryPage] {
        compactMap {
            if case .answer(let packet) = $0, case .historyPage(let page)? = packet.body { page } else { nil }
        }
    }
    var summaryPages: [Mss_Device_V1_SummaryPage] {
        compactMap {
            if case .answer(let packet) = $0, case .summaryPage(let page)? = packet.body { page } else { nil }
        }
    }
    var historyReads: [HistoryRead] {
        compactMap { if case .readHistory(let read) = $0 { read } else { nil } }
    }
    var summaryReads: [SummaryRead] {
        compactMap { if case .readSummary(let read) = $0 { read } else { nil } }
    }
}
