import BusMessages
import SwiftProtobuf
import SyncModel
import Testing

@testable import OplogWriter
@testable import SyncStore

/// Non-persistent pushes in notices, and the end of their validity (H4).
@Suite("H4: the plan of a group's notices") struct NoticePlanTests {
    private static let address = ChannelAddress(
        target: TargetAddress(instanceID: InstanceID("i"), kind: .user, target: "u"), bizType: BizType("B"))

    private static func stored(
        _ id: Int64, isDuplicate: Bool = false, isPersistent: Bool = false, awaitsOutcome: Bool = true,
        system: SyncModel.OperatingSystem? = nil, validFor: Int64 = 5_000
    ) -> NoticePlan.Stored {
        let oplog = Oplog(
            id: .zero, thirdMessageID: ThirdMessageID("m\(id)"), payload: [1], isBinary: false,
            targeting: Targeting(operatingSystem: system), validUntil: WallTime(milliseconds: 0),
            createdAt: WallTime(milliseconds: 0), isPersistent: isPersistent)
        let command = Mss_Bus_V1_AppendCommand.with {
            $0.target = address.target.bus
            $0.bizType = "B"
            $0.oplog = oplog.bus
        }
        let appended = OplogStore.Appended(
            channelID: 3, oplogID: OplogID(id), isDuplicate: isDuplicate, headBefore: OplogID(6),
            headAfter: OplogID(9), validUntil: WallTime(milliseconds: 1_000 + validFor),
            createdAt: WallTime(milliseconds: 1_000), isPersistent: isPersistent,
            rules: ChannelRules(isSingleDevice: false, checksSession: false), isImmediate: false,
            awaitsOutcome: awaitsOutcome, databaseTime: WallTime(milliseconds: 1_000))
        let session = DeviceSessionStore.Presence(
            ordinal: 0, gatewayID: "g", deviceID: DeviceID("d"),
            traits: DeviceTraits(operatingSystem: .iOS, appVersion: "1", slot: DeviceSlot(number: 0)),
            isOwner: false, hasValidVerdict: false, isSuspended: false)
        return NoticePlan.Stored(
            row: AppendHandler.Row(
                command: command, replyTo: "", append: OplogStore.Append(address: address, oplog: oplog)),
            appended: appended, sessions: [session])
    }

    private static func step(_ pushes: [NoticePlan.Stored]) -> NoticePlan.ChannelStep? {
        NoticePlan.steps(of: pushes, everyGateway: []).first
    }

    @Test("a repeat with an unknown first outcome is sent again under the first id, in order; another is not")
    func repeats() throws {
        let unknown = Self.stored(4, isDuplicate: true)
        let known = Self.stored(5, isDuplicate: true, awaitsOutcome: false)
        let step = try #require(Self.step([Self.stored(7), unknown, known]))
        #expect(step.notice.oplogs.entries.map(\.id) == [4, 7])
        #expect(Set(step.awaitingOutcome.map(\.appended.oplogID.value)) == [4, 7])
        #expect(step.notice.oplogs.databaseTimeMs == 1_000)
    }

    @Test("a repeat in the group of the first call shares its entry and its outcome")
    func repeatInGroup() throws {
        let restricted = Self.stored(7, system: .android)
        let step = try #require(Self.step([restricted, Self.stored(7, isDuplicate: true)]))
        #expect(step.notice.oplogs.entries.map(\.id) == [7] && step.awaitingOutcome.isEmpty)
        let both = try #require(Self.step([Self.stored(7), Self.stored(7, isDuplicate: true)]))
        #expect(both.notice.oplogs.entries.map(\.id) == [7] && both.awaitingOutcome.count == 2)
    }

    @Test("D11: a push that has expired by the database's clock finds no device online") func ended() {
        for validFor: Int64 in [-1, 0] {
            let push = Self.stored(7, isPersistent: true, awaitsOutcome: false, validFor: validFor)
            #expect(push.hasEnded && !push.isOnline)
        }
        #expect(Self.stored(7, validFor: 1).isOnline)
    }
}
