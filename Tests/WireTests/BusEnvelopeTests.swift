import BusMessages
import DeliveryHistory
import Foundation
import SwiftProtobuf
import TestSupport
import Testing

@Suite("Bus messages")
struct BusEnvelopeTests {
    /// An envelope type with a sample, type-erased.
    struct Kind: CustomTestStringConvertible, Sendable {
        let name: String
        let body: [UInt8]
        /// The body of a list that contains the sample's elements twice.
        let doubled: [UInt8]
        /// Parses a body as an envelope and serializes it again. The value is nil when the body is not an envelope.
        let rewrite: @Sendable ([UInt8]) -> [UInt8]?
        /// Parses a body as a list and returns the number of elements.
        let count: @Sendable ([UInt8]) -> Int?

        var testDescription: String { name }

        init<E: Envelope>(_ name: String, _: E.Type, _ sample: [E.Element]) {
            self.name = name
            body = E.body(sample)
            doubled = E.body(sample + sample)
            rewrite = { body in
                guard let envelope = try? E(serializedBytes: body) else { return nil }
                return try? envelope.serializedBytes()
            }
            count = { E.elements(of: $0)?.count }
        }
    }

    static let kinds = [
        Kind("append", Mss_Bus_V1_AppendCommands.self, BusSamples.appends),
        Kind("session", Mss_Bus_V1_SessionCommands.self, BusSamples.sessions),
        Kind("fetch", Mss_Bus_V1_FetchCommands.self, BusSamples.fetches),
        Kind("ack", Mss_Bus_V1_AckCommands.self, BusSamples.acks),
        Kind("acknowledgements of receivers", Mss_Bus_V1_AckCommands.self, BusSamples.receiverAcks),
        Kind("reads of receivers", Mss_Bus_V1_FetchCommands.self, BusSamples.receiverReads),
        Kind("replies of receivers", Mss_Bus_V1_Replies.self, BusSamples.receiverReplies),
        Kind("control", Mss_Bus_V1_ControlCommands.self, BusSamples.controls),
        Kind("validate", Mss_Bus_V1_ValidateCommands.self, BusSamples.validations),
        Kind("replies", Mss_Bus_V1_Replies.self, BusSamples.replies),
        Kind("device secret", Mss_Bus_V1_SessionCommands.self, BusSamples.deviceSecrets),
        Kind("connection number", Mss_Bus_V1_SessionCommands.self, BusSamples.connectionNumbers),
        Kind("session update", Mss_Bus_V1_SessionCommands.self, BusSamples.sessionUpdates),
        Kind("push token", Mss_Bus_V1_SessionCommands.self, BusSamples.pushTokens),
        Kind("device release", Mss_Bus_V1_ControlCommands.self, BusSamples.deviceReleases),
        Kind("wrong device secret", Mss_Bus_V1_Replies.self, BusSamples.wrongDeviceSecrets),
        Kind("suspension", Mss_Bus_V1_SessionCommands.self, BusSamples.suspensions),
        Kind("request replies", Mss_Bus_V1_Replies.self, BusSamples.requestReplies),
        Kind("admission", Mss_Bus_V1_AdmissionCommands.self, BusSamples.admissions),
        Kind("keys", Mss_Bus_V1_ControlCommands.self, BusSamples.keyCommands),
        Kind("snapshot of one purpose", Mss_Bus_V1_ControlCommands.self, BusSamples.snapshotRequests),
        Kind("admission replies", Mss_Bus_V1_Replies.self, BusSamples.admissionReplies),
        Kind("notices", Mss_Bus_V1_GatewayNotices.self, BusSamples.notices),
        Kind("verdicts", Mss_Bus_V1_Replies.self, BusSamples.verdictReplies),
        Kind("leases", Mss_Bus_V1_Replies.self, BusSamples.leaseReplies),
        Kind("revocations", Mss_Bus_V1_OperationCommands.self, BusSamples.revocations),
        Kind("revoked sessions", Mss_Bus_V1_SessionCommands.self, BusSamples.digests),
        Kind("endings", Mss_Bus_V1_GatewayNotices.self, BusSamples.endings),
        Kind("key ids", Mss_Bus_V1_ControlCommands.self, BusSamples.keyIDs),
        Kind("day ends", Mss_Bus_V1_Replies.self, BusSamples.dayEnds),
        Kind("process reports", Mss_Bus_V1_ProcessReports.self, BusSamples.processReports),
        Kind("instance changes", Mss_Bus_V1_ControlCommands.self, BusSamples.instanceChanges),
        Kind("commands of people", Mss_Bus_V1_OperationCommands.self, BusSamples.personCommands),
        Kind("replies to people", Mss_Bus_V1_Replies.self, BusSamples.personReplies),
        Kind("sources of people", Mss_Bus_V1_OperationCommands.self, BusSamples.personSources),
        Kind("sources of changes", Mss_Bus_V1_ControlCommands.self, BusSamples.changeSources),
        Kind("sources of records", Mss_Bus_V1_Replies.self, BusSamples.recordSources),
        Kind("disconnections", Mss_Bus_V1_GatewayNotices.self, BusSamples.disconnections),
        Kind("roll-outs", Mss_Bus_V1_OperationCommands.self, BusSamples.rolloutCommands),
        Kind("replies of roll-outs", Mss_Bus_V1_Replies.self, BusSamples.rolloutReplies),
        Kind("shares", Mss_Bus_V1_FetchCommands.self, BusSamples.sharedFetches),
        Kind("backlogs", Mss_Bus_V1_FetchCommands.self, BusSamples.backlogFetches),
        Kind("live replies", Mss_Bus_V1_Replies.self, BusSamples.liveReplies),
        Kind("timed notices", Mss_Bus_V1_GatewayNotices.self, BusSamples.timedNotices),
        Kind("facts", Mss_Bus_V1_Facts.self, BusSamples.facts),
        Kind("submissions", Mss_Bus_V1_SubmitCommands.self, BusSamples.submissions),
        Kind("relay commands", Mss_Bus_V1_RelayCommands.self, BusSamples.relayCommands),
        Kind("replies of relays", Mss_Bus_V1_Replies.self, BusSamples.operationReplies),
        Kind("relay of an instance", Mss_Bus_V1_ControlCommands.self, BusSamples.relayInstances),
        Kind("filters", Mss_Bus_V1_SessionCommands.self, BusSamples.filterCommands),
        Kind("replies of filters", Mss_Bus_V1_Replies.self, BusSamples.filterReplies),
        Kind("fetches by filters", Mss_Bus_V1_FetchCommands.self, BusSamples.filteredFetches),
        Kind("pushes with attributes", Mss_Bus_V1_AppendCommands.self, BusSamples.attributedAppends),
        Kind("pushes to conversations", Mss_Bus_V1_AppendCommands.self, BusSamples.appendsToConversations),
        Kind("fetches of conversations", Mss_Bus_V1_FetchCommands.self, BusSamples.conversationFetches),
        Kind("replies of conversations", Mss_Bus_V1_Replies.self, BusSamples.conversationReplies),
        Kind("records of conversations", Mss_Bus_V1_OperationCommands.self, BusSamples.recordsOfConversations),
        Kind("filtered configurations", Mss_Bus_V1_ControlCommands.self, BusSamples.filteredConfigurations),
        Kind("kept parameters", Mss_Bus_V1_GatewayNotices.self, BusSamples.keptParameters),
        Kind("facts for figures", Mss_Bus_V1_Facts.self, BusSamples.figureFacts),
    ]

    @Test("the bytes of every envelope are the recorded ones", arguments: kinds)
    func golden(_ kind: Kind) throws {
        let golden = try #require(BusGoldenBytes.byName[kind.name])
        #expect(kind.body.map { String(format: "%02x", $0) }.joined() == golden)
    }

    @Test("BusMessages.md names exactly the existing queues and exchanges")
    func document() throws {
        let file = ProjectFolder.url.appending(path: "Shared/Messages/BusMessages/BusMessages.md")
        let text = try String(contentsOf: file, encoding: .utf8)
        let named = Set(text.matches(of: /`(mss\.[a-z.]+)`/).map { String($0.1) })
        let queues = CommandQueue.allCases.map(\.rawValue) + Topology.definedQueues
        let exchanges =
            AnswerExchange.allCases.map(\.rawValue)
            + [Topology.noticesExchange, Topology.everyGatewayExchange, Topology.controlChangesExchange]
            + [Topology.reportsExchange]
        #expect(named.subtracting(queues.map(Topology.exchange)) == Set(queues + exchanges))
    }

    @Test("the announcement of control versions has the recorded bytes")
    func goldenChanges() throws {
        let changes = Mss_Bus_V1_ControlChanges.with {
            $0.schema = Topology.schemaVersion
            $0.versions = [8, 300]
        }
        let bytes: [UInt8] = try changes.serializedBytes()
        #expect(bytes == [0x08, 0x01, 0x12, 0x03, 0x08, 0xAC, 0x02])
    }

    @Test("a returned body gives the numbers of its commands, of any kind") func heads() {
        func check<E: Envelope>(_: E.Type, _ commands: [E.Element], _ number: (E.Element) -> UInt64) {
            #expect(Mss_Bus_V1_CommandHeads.elements(of: E.body(commands))?.map(\.correlation) == commands.map(number))
        }
        check(Mss_Bus_V1_AppendCommands.self, BusSamples.appends, \.correlation)
        check(Mss_Bus_V1_SessionCommands.self, BusSamples.sessions, \.correlation)
        check(Mss_Bus_V1_FetchCommands.self, BusSamples.fetches, \.correlation)
        check(Mss_Bus_V1_AckCommands.self, BusSamples.acks, \.correlation)
        check(Mss_Bus_V1_ControlCommands.self, BusSamples.controls, \.correlation)
        check(Mss_Bus_V1_OperationCommands.self, BusSamples.personCommands, \.correlation)
        check(Mss_Bus_V1_AdmissionCommands.self, BusSamples.admissions, \.correlation)
        check(Mss_Bus_V1_ValidateCommands.self, BusSamples.validations, \.correlation)
        check(Mss_Bus_V1_SubmitCommands.self, BusSamples.submissions, \.correlation)
        check(Mss_Bus_V1_RelayCommands.self, BusSamples.relayCommands, \.correlation)
    }

    @Test("a written body is read back unchanged", arguments: kinds)
    func roundTrip(_ kind: Kind) { #expect(kind.rewrite(kind.body) == kind.body) }

    @Test("two bodies one after the other are the body of both lists", arguments: kinds)
    func concatenation(_ kind: Kind) throws {
        let one = try #require(kind.count(kind.body))
        #expect(one > 0)
        #expect(kind.count(kind.body + kind.body) == 2 * one)
        // The bytes of one envelope of both lists: the schema once, then the elements in order.
        #expect(kind.rewrite(kind.body + kind.body) == kind.doubled)
    }

    @Test("an empty body is an empty list, and adds nothing to another", arguments: kinds)
    func emptyBody(_ kind: Kind) {
        #expect(kind.count([]) == 0)
        #expect(kind.count([] + kind.body) == kind.count(kind.body))
    }

    @Test("fields of a newer neighbour survive being passed on", arguments: kinds)
    func unknownFields(_ kind: Kind) {
        // Field 1000, a varint, and field 1001, a text.
        let newer: [UInt8] = kind.body + [0xC0, 0x3E, 0x2A, 0xCA, 0x3E, 0x02, 0x68, 0x69]
        #expect(kind.count(newer) == kind.count(kind.body))
        #expect(kind.rewrite(newer) == newer)
    }

    @Test("a fact of a newer kind is read as one without a body")
    func unknownFact() throws {
        // facts { at_ms: 1, field 15 { } }
        let facts = try #require(Mss_Bus_V1_Facts.elements(of: [0x12, 0x04, 0x08, 0x01, 0x7A, 0x00]))
        #expect(facts.count == 1)
        #expect(facts[0].atMs == 1)
        #expect(facts[0].body == nil)
    }

    @Test("a truncated body is refused or read up to its last complete element, never a crash", arguments: kinds)
    func truncation(_ kind: Kind) throws {
        let whole = try #require(kind.count(kind.body))
        for length in kind.body.indices {
            if let count = kind.count(Array(kind.body[..<length])) { #expect(count <= whole) }
        }
    }

    @Test("garbage never crashes a reader", arguments: kinds)
    func garbage(_ kind: Kind) {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        for round in 0..<2_000 {
            var body = round % 4 == 0 ? [] : kind.body
            for _ in 0..<Int.random(in: 1...8, using: &generator) {
                let byte = UInt8.random(in: .min ... .max, using: &generator)
                let place = Int.random(in: 0...body.count, using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0 where place < body.count: body[place] = byte
                case 1 where place < body.count: body.remove(at: place)
                case 2: body.removeSubrange(place...)
                default: body.insert(byte, at: place)
                }
            }
            // A body that parses as an envelope must survive serializing and parsing.
            if let again = kind.rewrite(body) {
                #expect(kind.count(again) == kind.count(body), "seed \(seed), round \(round)")
            }
        }
    }
}
