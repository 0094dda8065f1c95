import SyncModel
import Testing

@Suite("Reasons in a delivery trace")
struct DeliveryTraceTests {
    private static let now = WallTime(milliseconds: 10_000)
    private static let instance = Instance(
        id: InstanceID("i"), name: "", isEnabled: true, validatorURL: "", verdictLifetime: .zero)

    private static func configuration(_ kind: ChannelKind = .user) -> SyncConfiguration {
        SyncConfiguration(
            instanceID: instance.id, bizType: BizType("B"), description: "", kind: kind,
            isMultiDevice: kind.needsUser, isPersistent: true, repush: .all, checksSession: false, isOnline: true)
    }

    /// A trace without obstacles: the device is connected and everything matches.
    private static func trace(_ change: (inout DeliveryTrace) -> Void = { _ in }) -> DeliveryTrace {
        var trace = DeliveryTrace(
            oplog: Oplog(
                id: OplogID(5), thirdMessageID: ThirdMessageID("t"), payload: [], isBinary: false,
                targeting: .everyone, validUntil: WallTime(milliseconds: 20_000), createdAt: WallTime(milliseconds: 1),
                isPersistent: true))
        trace.instance = instance
        trace.configuration = configuration()
        trace.presence = DeliveryTrace.Presence(
            traits: DeviceTraits(operatingSystem: .iOS, appVersion: "1.0", slot: DeviceSlot(number: 0)),
            hasValidVerdict: false,
            isOwner: true, isSuspended: false)
        change(&trace)
        return trace
    }

    private static let at = WallTime(milliseconds: 7)

    private static let cases: [(DeliveryState, @Sendable (inout DeliveryTrace) -> Void)] = [
        (.onItsWay, { _ in }),
        (.delivered, { $0.record.confirmedAt = at }),
        (.dead, { $0.record.deadAt = at }),
        (
            .stored,
            {
                $0.record.handedOutAt = at
                $0.syncPoint = OplogID(5)
            }
        ),
        (.stored, { $0.syncPoint = OplogID(6) }),
        (.handedOut, { $0.record.handedOutAt = at }),
        (
            .recalled,
            {
                $0.record.handedOutAt = at
                $0.recalledAt = at
            }
        ),
        (.recalled, { $0.recalledAt = at }),
        (.overThreshold, { $0.record.discardedAt = at }),
        (.filteredBySystem, { $0.record.skipReason = .operatingSystem }),
        (.filteredByVersion, { $0.record.skipReason = .version }),
        (.expired, { $0.record.skipReason = .expired }),
        (.notPersisted, { $0.record.skipReason = .notStored }),
        (.expired, { $0.oplog.validUntil = now }),
        (.notPersisted, { $0.oplog.isPersistent = false }),
        (
            .outsideStage,
            {
                $0.oplog.targeting.share = DeviceShare(start: 1, size: 9_999)
                $0.slot = DeviceSlot(number: 0)
                $0.syncPoint = OplogID(6)
                $0.presence = nil
            }
        ),
        (.outsideStage, { $0.oplog.targeting.share = DeviceShare(start: 1, size: 9_999) }),
        (.instanceDisabled, { $0.instance?.isEnabled = false }),
        (.instanceDisabled, { $0.instance = nil }),
        (.configurationOffline, { $0.configuration?.isOnline = false }),
        (.configurationOffline, { $0.configuration = nil }),
        (.notConnected, { $0.presence = nil }),
        (.filteredBySystem, { $0.oplog.targeting.operatingSystem = .android }),
        (.filteredByVersion, { $0.oplog.targeting.minimumVersion = "2" }),
        (
            .notOwner,
            {
                $0.configuration?.isMultiDevice = false
                $0.presence?.isOwner = false
            }
        ),
        (.suspended, { $0.presence?.isSuspended = true }),
        (.sessionNotValid, { $0.configuration?.checksSession = true }),
        (
            .onItsWay,
            {
                $0.configuration?.checksSession = true
                $0.presence?.hasValidVerdict = true
            }
        ),
        (.waitsForForeground, { $0.configuration = configuration(.globalDevice) }),
        (
            .onItsWay,
            {
                $0.configuration = configuration(.globalDevice)
                $0.configuration?.isImmediate = true
            }
        ),
    ]

    @Test("every record and every obstacle has its state")
    func states() {
        for (expected, change) in Self.cases {
            #expect(Self.trace(change).state(now: Self.now).state == expected)
        }
        #expect(Set(Self.cases.map(\.0)) == Set(DeliveryState.allCases), "every state can be reached")
    }

    @Test("a past event has precedence over a present obstacle")
    func precedence() {
        for (happened, record) in Self.cases.prefix(4).dropFirst() {
            for (_, obstacle) in Self.cases where happened != .onItsWay {
                var trace = Self.trace(obstacle)
                let before = trace.state(now: Self.now).state
                record(&trace)
                if [.delivered, .dead].contains(before) { continue }
                #expect(trace.state(now: Self.now).state == happened)
            }
        }
    }

    @Test("codes and sentences are of one state each")
    func words() {
        #expect(Set(DeliveryState.allCases.map(\.code)).count == DeliveryState.allCases.count)
        #expect(Set(DeliveryState.allCases.map(\.sentence)).count == DeliveryState.allCases.count)
    }
}
