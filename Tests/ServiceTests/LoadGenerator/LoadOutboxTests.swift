import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import LoadGenerator

@Suite("A load run's device sends operations as phones do") struct LoadOutboxTests {
    private var outbox = LoadOutbox()

    private mutating func add(_ range: Range<Int>) {
        for number in range { outbox.add(.with { $0.operationID = "o\(number)" }) }
    }

    private mutating func sent() -> [String]? { outbox.next()?.submitOperations.operations.map(\.operationID) }

    private func answer(_ number: UInt32, _ refusals: [String: UInt32] = [:]) -> Mss_Device_V1_OperationsTaken {
        .with {
            $0.number = number
            $0.refusals = refusals.map { id, code in
                .with {
                    $0.operationID = id
                    $0.code = code
                }
            }
        }
    }

    @Test("one frame at a time, at most 64 in it, the rest behind") mutating func frames() {
        #expect(outbox.next() == nil)
        add(0..<70)
        #expect(sent() == (0..<64).map { "o\($0)" })
        #expect(sent() == nil)
        #expect(outbox.answered(answer(1)).taken.count == 64)
        #expect(sent() == (64..<70).map { "o\($0)" })
        #expect(outbox.answered(answer(1)).taken.isEmpty)
        #expect(outbox.answered(answer(2)).taken.count == 6)
        #expect(outbox.next() == nil)
    }

    @Test("temporarily refused operations are sent again before newer ones; finally refused ones are not")
    mutating func refusals() {
        add(0..<3)
        _ = sent()
        add(3..<4)
        let refusals = ["o1": OperationRefusalCode.unavailable, "o2": OperationRefusalCode.malformed]
        let (taken, refused) = outbox.answered(answer(1, refusals))
        #expect(taken == ["o0"] && refused == ["o2"])
        #expect(sent() == ["o1"])
        #expect(outbox.answered(answer(2)).taken == ["o1"])
        #expect(sent() == ["o3"])
    }

    @Test("an operation with a result is not sent again, after any reply to its frame") mutating func told() {
        add(0..<2)
        _ = sent()
        outbox.complete("o0")
        _ = outbox.answered(
            answer(1, ["o0": OperationRefusalCode.unavailable, "o1": OperationRefusalCode.unavailable]))
        #expect(sent() == ["o1"])
    }

    @Test("operations in flight are sent again on the next connection, under their first number")
    mutating func connections() {
        add(0..<2)
        _ = sent()
        outbox.ended()
        let again = outbox.next()?.submitOperations
        #expect(again?.number == 1 && again?.operations.map(\.operationID) == ["o0", "o1"])
        #expect(outbox.answered(answer(1)).taken == ["o0", "o1"])
    }
}
