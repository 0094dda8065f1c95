import DeviceProtocol
import SwiftProtobuf
import TestSupport

// Requests of a device, one after the other.
extension RawDevice {
    private var historyPages: [Mss_Device_V1_HistoryPage] {
        received.compactMap { if case .historyPage(let page)? = $0.body { page } else { nil } }
    }

    private var summaryPages: [Mss_Device_V1_SummaryPage] {
        received.compactMap { if case .summaryPage(let page)? = $0.body { page } else { nil } }
    }

    private var nextNumber: UInt32 { UInt32(historyPages.count + summaryPages.count + 1) }

    /// Requests a page of history and waits for it. By default: 100 oplogs, under the first bind.
    func history(
        _ bizType: String, _ more: (inout Mss_Device_V1_HistoryRequest) -> Void = { _ in }
    ) async throws -> Mss_Device_V1_HistoryPage {
        var packet = Mss_Device_V1_Packet()
        packet.historyRequest.requestNumber = nextNumber
        packet.historyRequest.bizType = bizType
        packet.historyRequest.bindNumber = 1
        packet.historyRequest.count = 100
        more(&packet.historyRequest)
        let number = packet.historyRequest.requestNumber
        try await send(packet)
        try await waits(for: "history page \(number)") { _ in historyPages.contains { $0.requestNumber == number } }
        return try requireValue(historyPages.last { $0.requestNumber == number }, "no page")
    }

    /// Reads history page by page to the end of the range.
    func wholeHistory(_ bizType: String, count: UInt32, oldestFirst: Bool) async throws -> [Mss_Device_V1_Entry] {
        var entries: [Mss_Device_V1_Entry] = []
        var next: Int64 = 0
        while true {
            let page = try await history(bizType) {
                $0.count = count
                $0.oldestFirst = oldestFirst
                if oldestFirst { $0.after = next } else { $0.before = next }
            }
            guard page.refusal == .none else { throw Failure("refused: \(page.refusal)") }
            entries += page.entries
            guard page.more else { return entries }
            next = page.next
        }
    }

    /// Requests a summary of the channels and waits for the page.
    func summary(after bizType: String = "", count: UInt32 = 16) async throws -> Mss_Device_V1_SummaryPage {
        let number = nextNumber
        try await send(
            .with {
                $0.summaryRequest.requestNumber = number
                $0.summaryRequest.bindNumber = 1
                $0.summaryRequest.afterBizType = bizType
                $0.summaryRequest.count = count
            })
        try await waits(for: "summary page \(number)") { _ in summaryPages.contains { $0.requestNumber == number } }
        return try requireValue(summaryPages.last { $0.requestNumber == number }, "no page")
    }

    /// Suspends Sync IDs.
    func suspend(_ bizTypes: String...) async throws {
        try await send(.with { $0.subscriptions.suspended = bizTypes })
    }

    /// The payloads of one Sync ID that the device received, in order.
    func payloads(_ bizType: String) -> [String] {
        batches.filter { $0.bizType == bizType }.flatMap(\.entries).map { String(decoding: $0.payload, as: UTF8.self) }
    }
}
