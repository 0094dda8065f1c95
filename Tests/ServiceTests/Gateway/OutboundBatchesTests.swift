import DeviceProtocol
import Foundation
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

@Suite("The owner of waiting batches")
struct OutboundBatchesTests {
    private static let now = ContinuousClock.now

    private static func batch(
        _ bizType: String, upto: Int64 = 1, bind: UInt32 = 1, payload: Int = 1
    ) -> OutboundBatch {
        let message = Mss_Device_V1_ChannelBatch.with {
            $0.bizType = bizType
            $0.bindNumber = bind
            $0.upto = upto
            $0.entries = [
                .with {
                    $0.oplogID = upto
                    $0.payload = Data(repeating: 0, count: payload)
                }
            ]
        }
        return OutboundBatch(batch: message, oplogs: [OplogID(upto)], channelID: 3)
    }

    private static func waiting(_ items: [OutboundBatch]) -> OutboundBatches {
        var batches = OutboundBatches()
        for item in items { batches.append(item, at: now) }
        return batches
    }

    @Test("a frame takes the batches that fit, in order; the others wait") func fits() {
        var batches = Self.waiting([Self.batch("B"), Self.batch("B", upto: 2), Self.batch("C")])
        let frame = batches.dequeueFrame(room: 2, bind: 1, accepted: nil)
        #expect(frame.map(\.batch.upto) == [1, 2])
        #expect(batches.waiting.map(\.batch.bizType) == ["C"])
        #expect(batches.dequeueFrame(room: 0, bind: 1, accepted: nil).isEmpty)
    }

    @Test("D16: batches of another bind are dropped; those that the client does not accept wait") func otherBind() {
        var batches = Self.waiting([Self.batch("B", bind: 2), Self.batch("C"), Self.batch("D")])
        #expect(batches.dequeueFrame(room: .max, bind: 1, accepted: ["D"]).map(\.batch.bizType) == ["D"])
        #expect(batches.waiting.map(\.batch.bizType) == ["C"])
    }

    @Test("a frame has a size limit, but one batch always fits") func size() {
        let large = Self.batch("B", payload: DeviceProtocolLimits.pushFrameBytes)
        var batches = Self.waiting([large])
        #expect(batches.isFull(for: Self.batch("C")))
        batches.append(Self.batch("C"), at: Self.now)
        #expect(batches.dequeueFrame(room: .max, bind: 1, accepted: nil).map(\.batch.bizType) == ["B"])
        #expect(batches.dequeueFrame(room: .max, bind: 1, accepted: nil).map(\.batch.bizType) == ["C"])
    }

    @Test("CaughtUp follows the waiting batches of its bind") func caughtUp() {
        let frame = Mss_Device_V1_Packet.with { $0.caughtUp.bindNumber = 1 }
        var batches = Self.waiting([Self.batch("B")])
        #expect(batches.holdCaughtUp(frame) == true)
        #expect(batches.dequeueCaughtUp(bind: 1) == nil)
        _ = batches.dequeueFrame(room: .max, bind: 1, accepted: nil)
        #expect(batches.dequeueCaughtUp(bind: 1) == frame)
        #expect(batches.dequeueCaughtUp(bind: 1) == nil)
        #expect(batches.holdCaughtUp(frame) == false, "no batch waits")
    }

    @Test("batches wait for pages of other channels at most 300 ms") func gathers() {
        var batches = Self.waiting([Self.batch("B")])
        batches.append(Self.batch("C"), at: Self.now + .milliseconds(200))
        #expect(batches.mayGather(at: Self.now + .milliseconds(299)))
        #expect(!batches.mayGather(at: Self.now + .milliseconds(300)))
        batches.recheck([])
        #expect(!batches.mayGather(at: Self.now))
    }

    @Test("H7: a written batch belongs to the connection until the socket has accepted its write") func unflushed() {
        var batches = Self.waiting([Self.batch("B")])
        #expect(batches.beginFlush() == false)
        #expect(!batches.hasUnflushed)
        _ = batches.dequeueFrame(room: .max, bind: 1, accepted: nil)
        #expect(batches.hasEncoded { $0.batch.bizType == "B" } && batches.hasUnflushed)
        #expect(batches.beginFlush() == true)
        #expect(batches.holdsInSocket { $0.batch.bizType == "B" })
        #expect(!batches.hasEncoded { _ in true })
        batches.recordFlush()
        #expect(!batches.hasUnflushed)
    }
}
