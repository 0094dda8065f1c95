import ArgumentParser
import BusMessages
import Credentials
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

/// `mssctl records`: what people did, at the console and with this tool (spec C9).
struct RecordsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "records", abstract: "Lists, shows, exports and verifies operation records.",
        discussion: ToolSettings.amqpHint, subcommands: [List.self, Show.self, Export.self, Verify.self])

    /// Records of one question.
    private static let pageRecords: UInt32 = 200

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "One line for each record, the newest first.",
            discussion: "Without a time: of the last 7 days, at most 1,000 in all.")
        @OptionGroup var filter: Filter
        @Option(help: "Only records before this number: the last line's, to page on.")
        var before: Int64?
        @Option(help: "Lines at the most, 1 to 200.")
        var limit = 50

        func validate() throws {
            guard (1...Int(pageRecords)).contains(limit) else { throw ValidationError("--limit takes 1 to 200.") }
        }

        func run() async throws {
            var request = try filter.model.bus
            request.before = before ?? 0
            request.limit = UInt32(limit)
            let question = request
            try await ControlClient.with { client in
                for record in try await client.records(question).records { print(record.line) }
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "One record, with the values before and after.")
        @Argument(help: "Its number.")
        var number: Int64

        func run() async throws {
            let number = number
            let question = Mss_Bus_V1_RecordsRequest.with {
                $0.after = number - 1
                $0.limit = 1
            }
            try await ControlClient.with { client in
                guard let found = try await client.records(question).records.first, found.number == number else {
                    throw ValidationError("there is no record \(number)")
                }
                print(found.page)
            }
        }
    }

    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints records as JSON, one object per line, the oldest first, from all times.")
        @OptionGroup var filter: Filter
        @Option(help: "Only records after this number.")
        var after: Int64 = 0

        func run() async throws {
            let (request, after) = (try filter.model.bus, after)
            try await ControlClient.with { client in
                try await RecordsCommand.eachPage(of: request, after: after, from: client) { page in
                    for record in page.records { print(record.jsonLine) }
                }
            }
        }
    }

    struct Verify: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Looks at the whole chain: no record was changed, removed, added or moved.",
            discussion: """
                It prints the end of the chain. Keep that line where nobody who can write the database can change it: \
                with --anchor the next run shows that all of it is as it was then.
                """)
        @Option(help: "Begin with this number.")
        var from: Int64 = 1
        @Option(help: "<number>:<hash>, as an earlier run printed it.")
        var anchor: String?

        func run() async throws {
            let (from, anchor) = (max(from, 1), try anchor.map(Self.head))
            try await ControlClient.with { client in
                let last = try await Self.verify(from: from, anchor: anchor, with: client)
                print("\(last.number):\(HexText.of(last.hash))")
            }
        }

        private static func head(_ text: String) throws -> RecordHead {
            let parts = text.split(separator: ":")
            guard parts.count == 2, let number = Int64(parts[0]), let hash = HexText.bytes(of: parts[1]) else {
                throw ValidationError("--anchor is <number>:<hash>")
            }
            return RecordHead(number: number, hash: hash)
        }

        private static func verify(
            from first: Int64, anchor: RecordHead?, with client: ControlClient
        ) async throws -> RecordHead {
            var verifier = RecordChainVerifier(from: first)
            var isAnchored = anchor == nil
            var head = RecordHead(number: 0, hash: RecordChain.origin)
            try await RecordsCommand.eachPage(of: .init(), after: first - 1, from: client) { page in
                head = page.head
                for record in page.records {
                    if let fault = verifier.take(record) { throw ValidationError("\(fault)") }
                    if record.number == anchor?.number, record.hash == anchor?.hash { isAnchored = true }
                }
            }
            if let fault = verifier.end(at: head) { throw ValidationError("\(fault)") }
            guard isAnchored else {
                throw ValidationError("record \(anchor?.number ?? 0) is not what it was, or was not looked at")
            }
            return head
        }
    }

    /// Asks for page after page, the oldest first.
    private static func eachPage(
        of request: Mss_Bus_V1_RecordsRequest, after: Int64, from client: ControlClient,
        _ body: (RecordPage) throws -> Void
    ) async throws {
        var after = after
        while true {
            let question = Mss_Bus_V1_RecordsRequest.with {
                $0 = request
                $0.after = after
                $0.limit = pageRecords
            }
            let page = try await client.records(question)
            try body(page)
            guard page.hasMore, let last = page.records.last else { return }
            after = last.number
        }
    }
}
