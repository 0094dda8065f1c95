import DeviceProtocol
import SwiftProtobuf

/// Requests for the summary of a user's channels.
enum GatewaySummaryCases {
    private static let rule = "On demand"

    static let all: [GatewayCase] = [
        GatewayCase("summary/of-the-channel", rule, summary),
        GatewayCase("summary/in-pages", rule, summaryPages),
        GatewayCase("summary/of-conversations", rule, conversations),
    ]

    private static func summaryPage(
        _ device: ScriptedDevice, after bizType: String = "", count: UInt32,
        _ more: (inout Mss_Device_V1_SummaryRequest) -> Void = { _ in }
    ) async throws -> Mss_Device_V1_SummaryPage {
        let number = device.requestNumbers.next()
        var packet = Mss_Device_V1_Packet()
        packet.summaryRequest.requestNumber = number
        packet.summaryRequest.bindNumber = 1
        packet.summaryRequest.afterBizType = bizType
        packet.summaryRequest.count = count
        more(&packet.summaryRequest)
        device.connection.send(packet)
        return try await device.findPage("SummaryPage \(number)") { packets in
            packets.lazy.map(\.summaryPage).first { $0.requestNumber == number }
        }
    }

    private static func allChannels(
        _ device: ScriptedDevice, count: UInt32
    ) async throws -> [Mss_Device_V1_ChannelSummary] {
        var channels: [Mss_Device_V1_ChannelSummary] = []
        while true {
            let page = try await summaryPage(device, after: channels.last?.bizType ?? "", count: count)
            // A page has one channel more if its last Sync ID has two channels. The next page begins after both.
            let beyond = page.channels.count > count ? page.channels.suffix(2).map(\.bizType) : []
            try Mismatch.unless(
                page.refusal == .none && page.channels.count <= count + (Set(beyond).count == 1 ? 1 : 0),
                "a page of at most \(count) channels", seen: "\(page.refusal), \(page.channels.count)")
            channels += page.channels
            guard page.more, !page.channels.isEmpty else { return channels }
        }
    }

    private static func summary(_ target: GatewayTarget) async throws {
        let (device, ids) = try await target.openWithHistory()
        try await device.expect(exactly: ids)
        let channel = try await allChannels(device, count: 16).first { $0.bizType == device.bizType }
        try Mismatch.unless(
            channel?.head == ids[9] && channel?.syncPoint == 0 && channel?.waiting == 10
                && channel?.last.oplogID == ids[9] && channel?.kind == .user,
            "head \(ids[9]), sync point 0, 10 waiting, the newest as last", seen: "\(channel.map { "\($0)" } ?? "none")"
        )
    }

    private static func summaryPages(_ target: GatewayTarget) async throws {
        let (device, _) = try await target.openWithHistory()
        let (many, single) = (try await allChannels(device, count: 16), try await allChannels(device, count: 1))
        let names = many.map(\.bizType)
        let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        try Mismatch.unless(names == sorted, "channels in byte order", seen: "\(names)")
        try Mismatch.unless(single.map(\.bizType) == names, "\(names) one by one", seen: "\(single.map(\.bizType))")
        let refused = try await summaryPage(device, count: 17)
        try Mismatch.unless(refused.refusal == .invalid, "INVALID for count 17", seen: "\(refused.refusal)")
    }

    private static func conversations(_ target: GatewayTarget) async throws {
        let device = try await target.open(target.fresh())
        let (api, user) = (target.api, device.identity.user)
        let cases = try await api.push(["1"], to: user, conversation: "case 7")
        let chat = try await api.push(["2", "3"], to: user, conversation: "chat")
        let bank = try await api.push(["4"], to: user, conversation: "bank")
        let none = try await api.push(["5"], to: user)
        try await device.expect(exactly: cases + chat + bank + none)
        var rows: [Mss_Device_V1_ChannelSummary] = []
        var after = ""
        var pages = 0
        repeat {
            let page = try await summaryPage(device, count: 2) {
                $0.conversationsOf = device.bizType
                $0.afterConversation = after
            }
            try Mismatch.unless(
                page.refusal == .none && page.channels.count <= 2 && page.more == !page.nextConversation.isEmpty,
                "at most 2 conversations, and where to continue", seen: "\(page)")
            rows += page.channels
            (after, pages) = (page.nextConversation, pages + 1)
        } while !after.isEmpty && pages < 4
        let seen = rows.map { "\($0.conversation): \($0.last.oplogID), \($0.waiting)" }
        let expected = ["bank: \(bank[0]), 1", "case 7: \(cases[0]), 1", "chat: \(chat[1]), 2"]
        try Mismatch.unless(seen == expected, "\(expected)", seen: "\(seen)")
        let refused = try await summaryPage(device, count: 2) { $0.conversationsOf = "NO-SUCH-TYPE" }
        try Mismatch.unless(refused.refusal == .notEligible, "NOT_ELIGIBLE", seen: "\(refused.refusal)")
    }
}
