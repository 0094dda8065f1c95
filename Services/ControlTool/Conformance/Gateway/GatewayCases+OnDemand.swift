import DeviceProtocol
import SwiftProtobuf

/// Subscriptions, history, summary.
extension GatewayCases {
    static let onDemand: [Case] = [
        Case("subscriptions/in-connect", "Subscriptions", suspendedInConnect),
        Case("subscriptions/later", "Subscriptions", suspendedLater),
        Case("history/newest-first", "On demand") { target in
            let (device, ids) = try await withHistory(target)
            let page = try await history(device) { $0.count = 3 }
            try expect(page, ids: Array(ids.reversed()[..<3]), head: ids[9], more: true)
            let next = try await history(device) {
                $0.count = 100
                $0.before = page.next
            }
            try expect(next, ids: Array(ids[..<7].reversed()), head: ids[9], more: false)
        },
        Case("history/oldest-first", "On demand") { target in
            let (device, ids) = try await withHistory(target)
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
        Case("history/open-range", "On demand") { target in
            let (device, ids) = try await withHistory(target)
            let page = try await history(device) {
                $0.count = 100
                $0.after = ids[2]
                $0.before = ids[6]
            }
            try expect(page, ids: Array(ids[3..<6].reversed()), head: ids[9], more: false)
        },
        Case("history/moves-no-position", "On demand") { target in
            let (device, ids) = try await withHistory(target)
            _ = try await history(device) { $0.count = 10 }
            try await device.leave()
            try await target.open(device.identity).expect(exactly: ids)
        },
        Case("history/page-of-64-kib", "On demand") { target in
            let identity = target.fresh()
            _ = try await target.api.push((0..<40).map { filler($0) }, to: identity.user)
            let page = try await history(try await target.open(identity)) { $0.count = 100 }
            let bytes = page.entries.reduce(0) { $0 + $1.payload.count }
            try Mismatch.unless(
                page.more && (1...65_536).contains(bytes), "at most 64 KiB, and more", seen: "\(bytes) bytes")
        },
        Case("history/empty-channel", "On demand") { target in
            let device = try await target.open(target.fresh())
            try expect(try await history(device) { $0.count = 10 }, ids: [], head: 0, more: false)
        },
        Case("history/refusals", "On demand", historyRefusals),
        Case("history/without-tombstones", "Tombstones", historyOfRecalled),
        Case("history/of-suspended-type", "Subscriptions") { target in
            let device = try await target.open(target.fresh()) { $0.suspended = [target.api.bizType] }
            let page = try await history(device) { $0.count = 1 }
            try Mismatch.unless(page.refusal == .notEligible, "NOT_ELIGIBLE", seen: "\(page.refusal)")
        },
        Case("requests/every-one-answered", "Framing", manyRequests),
        Case("summary/of-the-channel", "On demand", summary),
        Case("summary/in-pages", "On demand", summaryPages),
    ]

    // MARK: Subscriptions

    /// A gateway of before subscriptions names no longest interval either: both came into the text together.
    private static func needsSubscriptions(_ device: ScriptedDevice) throws(NotSupported) {
        if device.greeting.maxHeartbeatSeconds == 0 { throw NotSupported("a gateway of before subscriptions") }
    }

    private static func suspendedInConnect(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let early = try await target.api.push(["early"], to: identity.user)
        let device = try await target.open(identity) { $0.suspended = [target.api.bizType] }
        try needsSubscriptions(device)
        try await device.expectCaughtUp()
        let live = try await target.api.push(["live"], to: identity.user)
        try await device.connection.linger(.seconds(1))
        try Mismatch.unless(
            device.batches.isEmpty, "nothing of a suspended business type", seen: device.connection.summary)
        device.connection.send(.with { $0.subscriptions = .init() })
        try await device.expect(exactly: early + live)
    }

    private static func suspendedLater(_ target: GatewayTarget) async throws {
        let device = try await target.open(target.fresh())
        try needsSubscriptions(device)
        let early = try await target.api.push(["early"], to: device.identity.user)
        try await device.expect(exactly: early)
        device.acknowledge(upto: early[0])
        device.connection.send(.with { $0.subscriptions.suspended = [target.api.bizType] })
        try await device.expectAlive()
        let away = try await target.api.push(["away"], to: device.identity.user)
        try await device.connection.linger(.seconds(1))
        try Mismatch.unless(
            try device.ledger().ids == early, "nothing of a suspended business type", seen: device.connection.summary)
        // Each list replaces the one before.
        device.connection.send(.with { $0.subscriptions.suspended = ["NO-SUCH-TYPE"] })
        try await device.expect(exactly: early + away)
    }

    // MARK: History

    private static func withHistory(_ target: GatewayTarget) async throws -> (ScriptedDevice, [Int64]) {
        let identity = target.fresh()
        let ids = try await target.api.push((0..<10).map { "\($0)" }, to: identity.user)
        return (try await target.open(identity), ids)
    }

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
        return try await answer(device, "HistoryPage \(number)") { packets in
            packets.lazy.map(\.historyPage).first { $0.requestNumber == number }
        }
    }

    /// A gateway that goes on without an answer knows no requests.
    private static func answer<Page>(
        _ device: ScriptedDevice, _ expected: String, _ find: ([Mss_Device_V1_Packet]) -> Page?
    ) async throws -> Page {
        try await device.expectAlive()
        do {
            return try await device.connection.find(expected, within: .seconds(5), find)
        } catch let mismatch as Mismatch {
            if device.connection.isEnded { throw mismatch }
            throw NotSupported("the gateway ignores the request")
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
            ("an unknown business type", .notEligible, { $0.bizType = "NO-SUCH-TYPE" }),
            ("count 0", .invalid, { $0.count = 0 }),
            ("count 101", .invalid, { $0.count = 101 }),
            ("another bind", .invalid, { $0.bindNumber = 7 }),
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

    private static func historyOfRecalled(_ target: GatewayTarget) async throws {
        let device = try await target.open(target.fresh())
        let user = device.identity.user
        let id = try await target.api.push("to be taken back", to: user, key: "cf-\(user)")
        try await target.api.recall(key: "cf-\(user)", of: user)
        let stays = try await target.api.push(["stays"], to: user)
        let page = try await history(device) { $0.count = 10 }
        try Mismatch.unless(
            page.entries.map(\.oplogID) == stays, "neither \(id) nor its tombstone",
            seen: "\(page.entries.map(\.oplogID))")
    }

    private static func manyRequests(_ target: GatewayTarget) async throws {
        let (device, _) = try await withHistory(target)
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
        let pages = try await answer(device, "20 answers") { packets in
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

    // MARK: Summary

    private static func summaryPage(
        _ device: ScriptedDevice, after bizType: String = "", count: UInt32
    ) async throws -> Mss_Device_V1_SummaryPage {
        let number = device.requestNumbers.next()
        device.connection.send(
            .with {
                $0.summaryRequest.requestNumber = number
                $0.summaryRequest.bindNumber = 1
                $0.summaryRequest.afterBizType = bizType
                $0.summaryRequest.count = count
            })
        return try await answer(device, "SummaryPage \(number)") { packets in
            packets.lazy.map(\.summaryPage).first { $0.requestNumber == number }
        }
    }

    private static func allChannels(
        _ device: ScriptedDevice, count: UInt32
    ) async throws -> [Mss_Device_V1_ChannelSummary] {
        var channels: [Mss_Device_V1_ChannelSummary] = []
        while true {
            let page = try await summaryPage(device, after: channels.last?.bizType ?? "", count: count)
            // One more when the last business type has two channels: the next page begins behind both.
            let beyond = page.channels.count > count ? page.channels.suffix(2).map(\.bizType) : []
            try Mismatch.unless(
                page.refusal == .none && page.channels.count <= count + (Set(beyond).count == 1 ? 1 : 0),
                "a page of at most \(count) channels", seen: "\(page.refusal), \(page.channels.count)")
            channels += page.channels
            guard page.more, !page.channels.isEmpty else { return channels }
        }
    }

    private static func summary(_ target: GatewayTarget) async throws {
        let (device, ids) = try await withHistory(target)
        try await device.expect(exactly: ids)
        let channel = try await allChannels(device, count: 16).first { $0.bizType == device.bizType }
        try Mismatch.unless(
            channel?.head == ids[9] && channel?.syncPoint == 0 && channel?.waiting == 10
                && channel?.last.oplogID == ids[9] && channel?.kind == .user,
            "head \(ids[9]), sync point 0, 10 waiting, the newest as last", seen: "\(channel.map { "\($0)" } ?? "none")"
        )
    }

    private static func summaryPages(_ target: GatewayTarget) async throws {
        let (device, _) = try await withHistory(target)
        let (many, single) = (try await allChannels(device, count: 16), try await allChannels(device, count: 1))
        let names = many.map(\.bizType)
        let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        try Mismatch.unless(names == sorted, "channels in byte order", seen: "\(names)")
        try Mismatch.unless(single.map(\.bizType) == names, "\(names) one by one", seen: "\(single.map(\.bizType))")
        let refused = try await summaryPage(device, count: 17)
        try Mismatch.unless(refused.refusal == .invalid, "INVALID for count 17", seen: "\(refused.refusal)")
    }
}
