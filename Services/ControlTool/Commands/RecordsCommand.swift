import ArgumentParser
import BusMessages
import Credentials
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel
import ToolSupport

/// `mssctl records`: the audit log of actions at the console and with this tool (C9).
struct RecordsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "records", abstract: "Lists, shows, exports and verifies audit records.",
        discussion: ToolSettings.amqpHint, subcommands: [List.self, Show.self, Export.self, Verify.self])

    /// Number of records per request.
    private static let pageRecords: UInt32 = 200

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "One line for each record, the newest first.",
            discussion: "Without a time: records of the last 7 days, at most 1,000.")
        @OptionGroup var filter: Filter
        @Option(help: "Only records before this number; name the number of the last line for the next page.")
        var before: Int64?
        @Option(help: "Most lines, 1 to 200.")
        var limit = 50

        func validate() throws {
            guard (1...Int(pageRecords)).contains(limit) else { throw ValidationError("--limit must be 1 to 200.") }
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
        @Argument(help: "Number of the record.")
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
            abstract: "Prints records as JSON, one object per line, the oldest first, without a time limit.")
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
            abstract: "Verifies the whole chain: no record was changed, removed, added or moved.",
            discussion: """
                Prints the end of the chain. Store that line out of reach of the database's users: with --anchor a \
                later run shows that the records up to it are unchanged.
                """)
        @Option(help: "First record to verify.")
        var from: Int64 = 1
        @Option(help: "<number>:<hash>, the output of an earlier run.")
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
                throw ValidationError("--anchor must be <number>:<hash>")
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
                    if let fault = verifier.verify(record) { throw ValidationError("\(fault)") }
                    if record.number == anchor?.number, record.hash == anchor?.hash { isAnchored = true }
                }
            }
            if let fault = verifier.end(at: head) { throw ValidationError("\(fault)") }
            guard isAnchored else {
                throw ValidationError(
                    "record \(anchor?.number ?? 0) of --anchor was changed, or is not in the verified range")
            }
            return head
        }
    }

    /// Requests all pages, the oldest first.
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

extension RecordsCommand {
    /// The selection of records.
    struct Filter: ParsableArguments {
        @Option(help: "Only this instance.")
        var instance: String?
        @Option(help: "Only this actor, for example console:alice or mssctl:root.")
        var actor: String?
        @Option(help: "Only this action: \(OperationAction.allCases.map(\.word).joined(separator: ", ")).")
        var action: String?
        @Option(help: "From this time: 2026-11-21 or 2026-11-21T07:30:00Z.")
        var from: String?
        @Option(help: "Before this time.")
        var to: String?

        var model: RecordFilter {
            get throws {
                RecordFilter(
                    instanceID: instance.map { InstanceID($0) }, actor: actor,
                    actionCode: try action.map { word in
                        guard let action = OperationAction(word: word) else {
                            throw ValidationError("--action: unknown action \(word); see --help")
                        }
                        return action.rawValue
                    }, from: try from.map(Self.time), to: try to.map(Self.time))
            }
        }

        /// A date means its beginning in UTC.
        static func time(_ text: String) throws -> WallTime {
            let moment =
                (try? Date(text, strategy: .iso8601))
                ?? (try? Date(text, strategy: .iso8601.year().month().day()))
            guard let moment, moment.timeIntervalSince1970 > 0 else {
                throw ValidationError("\(text) is not a time such as 2026-11-21 or 2026-11-21T07:30:00Z")
            }
            return WallTime(milliseconds: Int64(moment.timeIntervalSince1970 * 1_000))
        }
    }
}

// Audit records as text.
extension OperationRecord {
    /// One line of a list.
    var line: String {
        ["\(number)", recordedAt.text, actor, actionWord, instanceID.text, subject].map(TerminalText.of)
            .joined(separator: "\t")
    }

    /// The record as one line of JSON without a line feed, for exports. The hash covers the texts exactly as this line
    /// contains them: `actor`, `source` and `subject` between their quotes, `before` and `after` in full.
    var jsonLine: String {
        let members = [
            "\"number\":\(number)", "\"recordedAt\":\"\(recordedAt.text)\"",
            "\"recordedAtMicroseconds\":\(recordedAtMicroseconds)", "\"actor\":\"\(actor)\"",
            "\"source\":\"\(source)\"",
            "\"action\":\"\(actionWord)\"", "\"instanceId\":\(OplogLine.quoted(instanceID.text))",
            "\"subject\":\"\(subject)\"", "\"before\":\(before ?? "null")", "\"after\":\(after ?? "null")",
            "\"previousHash\":\"\(HexText.of(previousHash))\"", "\"hash\":\"\(HexText.of(hash))\"",
        ]
        return "{\(members.joined(separator: ","))}"
    }

    /// All members. For a changed member also the value before.
    var page: String {
        let head = [
            ("record", "\(number)"), ("time", recordedAt.text), ("actor", actor), ("source", source),
            ("action", actionWord), ("instance", instanceID.text), ("subject", subject),
        ]
        let (old, new) = (Self.members(of: before), Self.members(of: after))
        let names = Set(old.keys).union(new.keys).sorted()
        let members = names.map { name in
            switch (old[name], new[name]) {
            case (let old?, let new?) where old != new: (name, "\(new)   (before: \(old))")
            case (let old, let new): (name, new ?? old ?? "")
            }
        }
        return (head + members + [("hash", HexText.of(hash))]).map {
            "\(TerminalText.of($0.0)): \(TerminalText.of($0.1))"
        }
        .joined(separator: "\n")
    }

    /// The members of a JSON object, each value as JSON.
    private static func members(of json: String?) -> [String: String] {
        guard let json, let object = try? JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any] else {
            return [:]
        }
        return object.compactMapValues { value in
            let options: JSONSerialization.WritingOptions = [.fragmentsAllowed, .sortedKeys, .withoutEscapingSlashes]
            let data = try? JSONSerialization.data(withJSONObject: value, options: options)
            return data.map { String(decoding: $0, as: UTF8.self) }
        }
    }
}
