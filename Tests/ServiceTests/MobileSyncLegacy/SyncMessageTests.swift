import Foundation
import Logging
import SyncModel
import Testing

@testable import MobileSync
@testable import MobileSyncLegacy

@Suite("The guide's shape of a batch") struct SyncMessageTests {
    private static func oplog(
        _ id: Int64, _ payload: [UInt8], isBinary: Bool = false, recalls: Int64? = nil, isReplay: Bool = false
    ) -> SyncOplog {
        SyncOplog(
            bizType: "B", oplogID: id, payload: payload, isBinary: isBinary, thirdMessageID: nil, conversation: nil,
            createdAt: 1_700_000_000_123, userID: "u", recalls: recalls, isReplay: isReplay, channelRow: 1,
            state: ResendLadder.State(repeats: 0, handOuts: 1))
    }

    @Test(
        "K6: members in the guide's order; isB only for Base64 bytes; our members only with a value",
        arguments: [
            (oplog(7, Array("text".utf8)), #"{"pl":"text","mk":7,"mct":1700000000123}"#),
            (oplog(8, [0, 255], isBinary: true), #"{"pl":"AP8=","isB":1,"mk":8,"mct":1700000000123}"#),
            (oplog(9, [], recalls: 7), #"{"pl":"","mk":9,"mct":1700000000123,"recalls":7}"#),
            (oplog(9, [120], isReplay: true), #"{"pl":"x","mk":9,"mct":1700000000123,"isReplay":1}"#),
            (
                oplog(9_007_199_254_740_991, Array("é\"\\/\n\u{1}😀\u{2028}".utf8)),
                "{\"pl\":\"é\\\"\\\\/\\n\\u0001😀\u{2028}\",\"mk\":9007199254740991,\"mct\":1700000000123}"
            ),
        ])
    func json(oplog: SyncOplog, expected: String) { #expect(SyncMessage.json(oplog) == expected) }

    @Test("K6: any text passes a JSON parser unchanged") func roundTrip() throws {
        struct Item: Decodable { let pl: String }
        let text = String(String.UnicodeScalarView((0...0x2FFF).compactMap { Unicode.Scalar($0) }))
        let json = SyncMessage.json(Self.oplog(1, Array(text.utf8)))
        let parsed = try JSONDecoder().decode(Item.self, from: Data(json.utf8)).pl
        #expect(parsed.unicodeScalars.elementsEqual(text.unicodeScalars))
    }
}
