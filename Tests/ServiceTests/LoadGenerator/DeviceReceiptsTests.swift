import DeviceProtocol
import NIOCore
import SwiftProtobuf
import Testing

@testable import LoadGenerator

@Suite("A load device acknowledges and reports the data that it has received") struct DeviceReceiptsTests {
    private var receipts = DeviceReceipts()

    private mutating func receive(_ ids: [Int64]) -> Bool {
        let channel = Array("UCHAT".utf8).withUnsafeBytes { receipts.channel(0, $0) }
        for id in ids {
            let isNew = receipts.receive(id, inChannel: channel)
            #expect(isNew)
        }
        return receipts.finish(ScannedBatch(bindNumber: 1, upto: ids.last ?? 0), inChannel: channel)
    }

    /// The frames that the device writes now, and whether it has nothing to send any more.
    private mutating func answers() throws -> (packets: [Mss_Device_V1_Packet], isClean: Bool) {
        var buffer = ByteBuffer()
        let isClean = receipts.writeAnswers(into: &buffer)
        var packets: [Mss_Device_V1_Packet] = []
        while let size = buffer.readInteger(as: UInt32.self), let bytes = buffer.readBytes(length: Int(size)) {
            packets.append(try Mss_Device_V1_Packet(serializedBytes: bytes))
        }
        return (packets, isClean)
    }

    @Test("one report at a time; the device has nothing to send after the last one is recorded")
    mutating func oneReport() throws {
        #expect(receive([1, 2]))
        let first = try answers()
        #expect(first.packets.map(\.confirmReport.reportID) == [0, 1] && !first.isClean)
        #expect(first.packets[0].storedAck.channels.map(\.upto) == [2])
        #expect(!receive([3]))
        let second = try answers()
        #expect(second.packets.map(\.storedAck.channels.count) == [1] && !second.isClean)
        receipts.recorded(7)
        #expect(try answers().packets.isEmpty)
        receipts.recorded(1)
        let third = try answers()
        #expect(third.packets.map(\.confirmReport.reportID) == [2] && !third.isClean)
        receipts.recorded(2)
        #expect(try answers().isClean)
        #expect(receive([4]))
    }

    @Test("a report that the connection's end interrupts is sent again, with a new number")
    mutating func interruptedReport() throws {
        _ = receive([1, 2])
        _ = try answers()
        receipts.connectionEnded()
        let again = try answers().packets
        #expect(again.map(\.confirmReport.reportID) == [2])
        #expect(again[0].confirmReport.channels.map(\.oplogIds) == [[1, 2]])
        #expect(receipts.syncPoints(isUser: true).map(\.oplogID) == [2])
        #expect(receipts.syncPoints(isUser: false).isEmpty)
    }

    @Test("an id that is not above the last one is found") mutating func disorder() {
        #expect(receive([5]))
        let channel = Array("UCHAT".utf8).withUnsafeBytes { receipts.channel(0, $0) }
        #expect(!receipts.receive(5, inChannel: channel) && !receipts.receive(4, inChannel: channel))
        #expect(receipts.position(ofChannel: channel) == 5)
    }
}
