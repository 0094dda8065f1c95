import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel

/// Dead letters: what apps were given as often as the ladder allows and never confirmed (spec D14).
struct DeadLetterArea: Sendable {
    private static let rows: UInt32 = 200

    let desk: ControlDesk

    /// One of them.
    struct Letter: Encodable, Sendable {
        let bizType: String
        let linkToken: String?
        let oplogId: Int64
        let thirdMsgId: String
        let deviceId: String
        let attempts: Int
        /// Milliseconds since 1970.
        let deadAt: Int64
        /// Its content is still there to be given once more.
        let replayable: Bool

        // For pages alone.
        let deadText: String
        let trace: String

        private enum CodingKeys: String, CodingKey {
            case bizType, linkToken, oplogId, thirdMsgId, deviceId, attempts, deadAt, replayable
        }
    }

    /// The newest of them.
    struct List: Encodable, Sendable {
        let letters: [Letter]

        // For pages alone.
        let bizType: String
        let isEmpty: Bool
        let isCut: Bool
        let back: String
        let api: String
        let mayChange: Bool

        private enum CodingKeys: String, CodingKey { case letters }
    }

    private struct Input: Decodable {
        let bizType: String
        let linkToken: String?
        let oplogId: Int64
        let deviceId: String
    }

    var routes: [Route] {
        let path = "/instances/{instance}/dead-letters"
        return [
            Route(method: .get, pattern: RoutePattern(path), access: .instance(.viewer), summary: "Dead letters.") {
                exchange throws(ConsoleFault) in
                .page(
                    PageContent(
                        template: "dead-letters", title: "title.deadLetters", tab: .data,
                        instanceID: exchange.instanceID, content: try await list(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + path), access: .instance(.viewer),
                summary: "The newest 200 dead letters.", queries: [RouteInput("bizType", "Only of this Sync ID.")],
                example: AnswerExamples.deadLetters
            ) { exchange throws(ConsoleFault) in .json(try await list(exchange)) },
            Route(
                method: .post, pattern: RoutePattern("/api/v1\(path)/replay"), access: .instance(.operations),
                summary: "Gives a dead letter to its device once more.",
                inputs: [
                    RouteInput("bizType", required: true, "As listed."), RouteInput("linkToken", "As listed."),
                    RouteInput("oplogId", .whole, required: true, "As listed."),
                    RouteInput("deviceId", required: true, "As listed."),
                ]
            ) { exchange throws(ConsoleFault) in
                let input = try exchange.input(Input.self)
                let request = Mss_Bus_V1_ReplayRequest.with {
                    $0.oplog.instanceID = exchange.instanceID.text
                    $0.oplog.bizType = input.bizType
                    $0.oplog.linkToken = input.linkToken ?? ""
                    $0.oplog.oplogID = input.oplogId
                    $0.deviceID = input.deviceId
                }
                let reply = try await desk.operate(by: try exchange.signedIn()) { $0.replay = request }
                guard reply.replay.rereadID > 0 else { throw .noSuch("deadLetter", "\(input.oplogId)") }
                return .done
            },
        ]
    }

    private func list(_ exchange: Exchange) async throws(ConsoleFault) -> List {
        let instance = try desk.instance(exchange.instanceID)
        let bizType = (exchange.query["bizType"] ?? "").trimmed
        let reply = try await desk.operate(by: try exchange.signedIn()) {
            $0.deadLetters.instanceID = instance.id.text
            $0.deadLetters.bizType = bizType
            $0.deadLetters.limit = Self.rows
        }
        let letters = reply.deadLetters.letters.map { letter in
            let token = letter.target.target.isEmpty ? nil : letter.target.target
            return Letter(
                bizType: letter.bizType, linkToken: token, oplogId: letter.oplogID,
                thirdMsgId: letter.thirdMessageID, deviceId: letter.deviceID, attempts: Int(letter.attempts),
                deadAt: letter.deadAtMs, replayable: letter.replayable,
                deadText: WallTime(milliseconds: letter.deadAtMs).text,
                trace: Paths.page(
                    instance.id, "trace",
                    query: [
                        ("bizType", letter.bizType), ("linkToken", token), ("oplogId", "\(letter.oplogID)"),
                        ("deviceId", letter.deviceID),
                    ]))
        }
        return List(
            letters: letters, bizType: bizType, isEmpty: letters.isEmpty, isCut: letters.count >= Int(Self.rows),
            back: Paths.page(instance.id, "data"),
            api: "/api/v1" + Paths.page(instance.id, "dead-letters"),
            mayChange: Access.instance(.operations).allows(exchange.visitor?.account, instance: instance.id))
    }
}
