import DeviceProtocol
import SwiftProtobuf

/// Requests for the history of a channel.
enum GatewayHistoryCases {
    private static let rule = "On demand"

    static let all: [GatewayCase] = [
        GatewayCase("history/newest-first", rule) { target in
            let (device, ids) = try await target.openWithHistory()
            let page = try await history(device) { $0.count = 3 }
            try expect(page, ids: Array(ids.reversed()[..<3]), head: ids[9], more: true)
            let next = try await history(device) {
                $0.count = 100
                $0.before = page.next
            }
            try expect(next, ids: Array(ids[..<7].reversed()), head: ids[9], more: false)
        },
        GatewayCase("history/oldest-first", rule) { target in
            let (device, ids) = try await target.openWithHistory()
            let page = try await history(device) {
                $0.count = 4
                $0.oldestFirst = true
            }
            try expect(page, ids: Array(ids[..<4]), head: ids[9], more: true)
            let next = try await history(device) {
                $0.count = 100
                $0.oldestFirst = true
                $0.after = page.next
                $0.before = ids[9]
            }
            try expect(next, ids: Array(ids[4..<9]), head: ids[9], more: false)
        },
        GatewayCase("history/open-range", rule) { target in
            let (device, ids) = try await target.openWithHistory()
            let page = try await history(device) {
                $0.count = 100
                $0.after = ids[2]
                $0.before = ids[6]
            }
            try expect(page, ids: Array(ids[3..<6].reversed()), head: ids[9], more: false)
        },
        GatewayCase("history/moves-no-position", rule) { target in
            let (device, ids) = try await target.openWithHistory()
            _ = try await history(device) { $0.count = 10 }
            try await device.leave()
            try await target.open(device.identity).expect(exactly: ids)
        },
        GatewayCase("history/page-of-64-kib", rule) { target in
            let identity = target.fresh()
            _ = try await target.api.pushFillers(40, to: identity.user)
            let page = try await history(try await target.open(identity)) { $0.count = 100 }
            let bytes = page.entries.reduce(0) { $0 + $1.payload.count }
            try Mismatch.unless(
                page.more && (1...65_536).contains(bytes), "at most 64 KiB, and more", seen: "\(bytes) bytes")
        },
        GatewayCase("history/empty-channel", rule) { target in
            let device = try await target.open(target.fresh())
            try expect(try await history(device) { $0.count = 10 }, ids: [], head: 0, more: false)
        },
        GatewayCase("history/of-a-conversation", rule, historyOfConversation),
        GatewayCase("history/refusals", rule, historyRefusals),
        GatewayCase("history/without-tombstones", "Tombstones", historyOfRecalled),
        GatewayCase("history/of-suspended-type", "Subscriptions") { target in
            let device = try await target.open(target.fresh()) { $0.suspended = [target.api.bizType] }
            let page = try await history(device) { $0.count = 1 }
            try Mismatch.unless(page.refusal == .notEligible, "NOT_ELIGIBLE", seen: "\(page.refusal)")
        },
        GatewayCase("requests/every-one-answered", "Framing", manyRequests),
    ]

    private static func history(
        _ device: ScriptedDevice, _ fill: (inout Mss_Device_V1_HistoryRequest) -> Void
    ) async throws -> Mss_Device_V1_HistoryPage {
        let number = device.requestNumbers.next()
        var packet = Mss_Device_V1_Packet()
        packet.historyRequest.requestNumber = number
        packet.historyRequest.bizType = device.bizType
        packet.historyRequest.bindNumber = 1
        fill(&packet.historyRequest)
        device.connection.send(packet)
        return try await device.findPage("HistoryPage \(number)") { packets in
            packets.lazy.map(\.historyPage).first { $0.requestNumber == number }
        }
    }

    private static func expect(
        _ page: Mss_Device_V1_HistoryPage, ids: [Int64], head: Int64, more: Bool
    ) throws(Mismatch) {
        try Mismatch.unless(
            page.refusal == .none && page.kind == .user && page.bindNumber == 1 && page.entries.map(\.oplogID) == ids
                && page.head == head && page.more == more,
            "\(ids), head \(head), more \(more), kind user, bind 1",
            seen:
                "\(PacketSummary.text(of: .with { $0.historyPage = page })), more \(page.more), bind \(page.bindNumber)"
        )
    }

    private static func historyRefusals(_ target: GatewayTarget) async throws {
        let device = try await target.open(target.fresh())
        let cases: [(String, Mss_Device_V1_RequestRefusal, (inout Mss_Device_V1_HistoryRequest) -> Void)] = [
            ("an unknown Sync ID", .notEligible, { $0.bizType = "NO-SUCH-TYPE" }),
            ("count 0", .invalid, { $0.count = 0 }),
            ("count 101", .invalid, { $0.count = 101 }),
            ("another bind", .invalid, { $0.bindNumber = 7 }),
            ("a conversation of 101", .invalid, { $0.conversation = String(repeating: "c", count: 101) }),
        ]
        for (what, refusal, change) in cases {
            let page = try await history(device) {
                $0.count = 1
                change(&$0)
            }
            try Mismatch.unless(
                page.refusal == refusal && page.entries.isEmpty, "\(refusal) for \(what)", seen: "\(page.refusal)")
        }
    }

    private static func historyOfConversation(_ target: GatewayTarget) async throws {
        let device = try await target.open(target.fresh())
        let user = device.identity.user
        let (api, more) = (target.api, ["1", "2", "3"])
        let first = try await api.push(more, to: user, conversation: "a chat")
        _ = try await api.push(more, to: user)
        let second = try await api.push(more, to: user, conversation: "a chat")
        let others = try await api.push(more, to: user, conversation: "another chat")
        let page = try await history(device) {
            $0.count = 4
            $0.conversation = "a chat"
        }
        try expect(page, ids: second.reversed() + [first[2]], head: others[2], more: true)
        try Mismatch.unless(
            page.entries.allSatisfy { $0.conversation == "a chat" }, "entries with their conversation",
            seen: "\(page.entries.map(\.conversation))")
        let next = try await history(device) {
            $0.count = 4
            $0.conversation = "a chat"
            $0.before = page.next
        }
        try expect(next, ids: [first[1], first[0]], head: others[2], more: false)
        let none = try await history(device) {
            $0.count = 4
            $0.conversation = "no chat"
        }
        try expect(none, ids: [], head: others[2], more: false)
    }

    private static func historyOfRecalled(_ target: GatewayTarget) async throws {
        let device = try await target.open(target.fresh())
        let user = device.identity.user
        let id = try await target.api.push("to be recalled", to: user, key: "cf-\(user)")
        try await target.api.recall(key: "cf-\(user)", of: user)
        let stays = try await target.api.push(["stays"], to: user)
        let page = try await history(device) { $0.count = 10 }
        try Mismatch.unless(
            page.entries.map(\.oplogID) == stays, "neither \(id) nor its tombstone",
            seen: "\(page.entries.map(\.oplogID))")
    }

    private static func manyRequests(_ target: GatewayTarget) async throws {
        let (device, _) = try await target.openWithHistory()
        let numbers = (1...20).map { _ in device.requestNumbers.next() }
        device.connection.sendBytes(
            FrameBytes.of(
                numbers.map { number in
                    .with {
                        $0.historyRequest.requestNumber = number
                        $0.historyRequest.bizType = device.bizType
                        $0.historyRequest.bindNumber = 1
                        $0.historyRequest.count = 1
                    }
                }))
        let pages = try await device.findPage("20 pages") { packets in
            let pages = packets.map(\.historyPage).filter { $0.requestNumber > 0 }
            return pages.count >= numbers.count ? pages : nil
        }
        try Mismatch.unless(
            pages.map(\.requestNumber).sorted() == numbers, "each answered once", seen: device.connection.summary)
        try Mismatch.unless(
            pages.allSatisfy { $0.refusal == .none || $0.refusal == .tryAgain }
                && pages.contains { $0.refusal == .none },
            "a page or TRY_AGAIN", seen: device.connection.summary)
    }
}
