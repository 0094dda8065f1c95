import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel

/// Dead letters: oplogs that a device's app did not confirm within the resend ladder (D14).
struct DeadLetterRoutes: Sendable {
    private static let rows: UInt32 = 200

    let control: ControlService

    /// One dead letter.
    struct Letter: Encodable, Sendable {
        let bizType: String
        let linkToken: String?
        let oplogId: Int64
        let thirdMsgId: String
        let deviceId: String
        let attempts: Int
        /// Milliseconds since 1970.
        let deadAt: Int64
        /// Whether its content still exists, so that it can be sent again.
        let replayable: Bool

        // For pages alone.
        let deadText: String
        let trace: String

        private enum CodingKeys: String, CodingKey {
            case bizType, linkToken, oplogId, thirdMsgId, deviceId, attempts, deadAt, replayable
        }
    }

    /// The newest dead letters.
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
                request throws(ConsoleFault) in
                .page(
                    PageContent(
                        template: "dead-letters", title: "title.deadLetters", tab: .data,
                        instanceID: request.instanceID, content: try await list(request)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + path), access: .instance(.viewer),
                summary: "The newest 200 dead letters.", queries: [RouteInput("bizType", "Only this Sync ID.")],
                example: AnswerExamples.deadLetters
            ) { request throws(ConsoleFault) in .json(try await list(request)) },
            Route(
                method: .post, pattern: RoutePattern("/api/v1\(path)/replay"), access: .instance(.operations),
                summary: "Sends a dead letter to its device again.",
                inputs: [
                    RouteInput("bizType", required: true, "As listed."), RouteInput("linkToken", "As listed."),
                    RouteInput("oplogId", .whole, required: true, "As listed."),
                    RouteInput("deviceId", required: true, "As listed."),
                ]
            ) { request throws(ConsoleFault) in
                let input = try request.input(Input.self)
                let replay = Mss_Bus_V1_ReplayRequest.with {
                    $0.oplog.instanceID = request.instanceID.text
                    $0.oplog.bizType = input.bizType
                    $0.oplog.linkToken = input.linkToken ?? ""
                    $0.oplog.oplogID = input.oplogId
                    $0.deviceID = input.deviceId
                }
                let reply = try await control.operate(by: try request.signedIn()) { $0.replay = replay }
                guard reply.replay.rereadID > 0 else { throw .noSuch("deadLetter", "\(input.oplogId)") }
                return .done
            },
        ]
    }

    private func list(_ request: ConsoleRequest) async throws(ConsoleFault) -> List {
        let instance = try control.instance(request.instanceID)
        let bizType = (request.query["bizType"] ?? "").trimmed
        let reply = try await control.operate(by: try request.signedIn()) {
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
            mayChange: Access.instance(.operations).allows(request.principal?.account, instance: instance.id))
    }
}
