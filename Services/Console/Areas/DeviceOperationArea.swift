import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel

/// Operations of devices: what users did there, and what became of it at the tenant.
struct DeviceOperationArea: Sendable {
    private static let rows: UInt32 = 200

    let desk: ControlDesk

    /// One of them.
    struct Operation: Encodable, Sendable {
        let number: Int64
        let deviceId: String
        let userId: String
        let operationId: String
        let component: String
        let entityKey: String
        let operation: String
        /// `waiting`, `answered`, `accepted`, `refused` or `dead`.
        let state: String
        let attempts: Int
        /// The last answer's; 0: there was none.
        let code: Int
        let message: String
        /// Milliseconds since 1970.
        let takenAt: Int64
        let bodyBytes: Int
        let children: Int

        // For pages alone.
        let takenText: String
        let stateWord: String
        let isDead: Bool

        private enum CodingKeys: String, CodingKey {
            case number, deviceId, userId, operationId, component, entityKey, operation, state, attempts, code, message
            case takenAt, bodyBytes, children
        }
    }

    /// What came of operations on one UTC day.
    struct Day: Encodable, Sendable {
        let day: String
        let component: String
        let accepted: Int64
        let refused: Int64
        /// Given up; one that is done after all counts in both.
        let dead: Int64
        /// Calls of the tenant.
        let attempts: Int64
        /// From being taken to the answer, on average.
        let averageMilliseconds: Int64

        init(_ day: Mss_Bus_V1_DeviceOperationDay) {
            self.day = day.day
            component = day.component
            (accepted, refused, dead, attempts) = (day.accepted, day.refused, day.dead, day.attempts)
            averageMilliseconds = day.waitedMs / max(1, day.accepted + day.refused + day.dead)
        }
    }

    /// A state that can be chosen.
    struct Choice: Sendable {
        let state: String
        let name: String
        let isCurrent: Bool
    }

    /// The newest of them.
    struct List: Encodable, Sendable {
        let operations: [Operation]
        /// Of the whole instance: those that wait for the tenant, and those that were given up.
        let waiting: Int64
        let dead: Int64
        /// Of the last 31 days, the newest first.
        let days: [Day]

        // For pages alone.
        let hasDays: Bool
        let choices: [Choice]
        let isEmpty: Bool
        let isCut: Bool
        let back: String
        let api: String
        let mayChange: Bool

        private enum CodingKeys: String, CodingKey { case operations, waiting, dead, days }
    }

    private struct Input: Decodable {
        let deviceId: String
        let operationId: String
    }

    var routes: [Route] {
        let path = "/instances/{instance}/operations"
        return [
            Route(
                method: .get, pattern: RoutePattern(path), access: .instance(.viewer), summary: "Operations of devices."
            ) { exchange throws(ConsoleFault) in
                .page(
                    PageContent(
                        template: "operations", title: "title.deviceOperations", tab: .data,
                        instanceID: exchange.instanceID, content: try await list(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + path), access: .instance(.viewer),
                summary: "The newest 200 operations of devices.",
                queries: [
                    RouteInput("state", "Only in this state: waiting, answered, accepted, refused or dead."),
                    RouteInput("before", .whole, "Only those with a lower number."),
                ], example: AnswerExamples.deviceOperations
            ) { exchange throws(ConsoleFault) in .json(try await list(exchange)) },
            Route(
                method: .post, pattern: RoutePattern("/api/v1\(path)/retry"), access: .instance(.operations),
                summary: "Has an operation that was given up done after all.",
                inputs: [
                    RouteInput("deviceId", required: true, "As listed."),
                    RouteInput("operationId", required: true, "As listed."),
                ]
            ) { exchange throws(ConsoleFault) in
                let input = try exchange.input(Input.self)
                let name = Mss_Bus_V1_DeviceOperationName.with {
                    $0.instanceID = exchange.instanceID.text
                    $0.deviceID = input.deviceId
                    $0.operationID = input.operationId
                }
                let reply = try await desk.relay(by: try exchange.signedIn()) { $0.retry = name }
                guard reply.deviceOperation.refusal.isEmpty else {
                    throw .noSuch("deadOperation", input.operationId)
                }
                return .done
            },
        ]
    }

    private func list(_ exchange: Exchange) async throws(ConsoleFault) -> List {
        let instance = try desk.instance(exchange.instanceID)
        let state = DeviceOperationState(word: exchange.query["state"] ?? "")
        let before = exchange.query["before"].flatMap { Int64($0) } ?? 0
        let reply = try await desk.relay(by: try exchange.signedIn()) {
            $0.list.instanceID = instance.id.text
            $0.list.state = UInt32(state?.rawValue ?? 0)
            $0.list.before = before
            $0.list.limit = Self.rows
        }.deviceOperations
        let words = exchange.words
        func count(_ state: DeviceOperationState) -> Int64 {
            reply.counts.first { $0.state == UInt32(state.rawValue) }?.operations ?? 0
        }
        func word(_ state: DeviceOperationState?) -> String {
            state.map { words.text("operationState.\($0.word)") } ?? words.text("everyState")
        }
        let states: [DeviceOperationState?] = [nil] + DeviceOperationState.allCases
        return List(
            operations: reply.operations.map { Operation($0, words) }, waiting: count(.waiting), dead: count(.dead),
            days: reply.days.map(Day.init), hasDays: !reply.days.isEmpty,
            choices: states.map { Choice(state: $0?.word ?? "", name: word($0), isCurrent: $0 == state) },
            isEmpty: reply.operations.isEmpty, isCut: reply.operations.count >= Int(Self.rows),
            back: Paths.page(instance.id, "data"), api: "/api/v1" + Paths.page(instance.id, "operations"),
            mayChange: Access.instance(.operations).allows(exchange.visitor?.account, instance: instance.id))
    }
}

extension DeviceOperationArea.Operation {
    init(_ row: Mss_Bus_V1_DeviceOperationRow, _ words: Words) {
        let state = DeviceOperationState(rawValue: Int16(clamping: row.state))
        self.init(
            number: row.number, deviceId: row.deviceID, userId: row.userID, operationId: row.operationID,
            component: row.component, entityKey: row.entityKey, operation: row.name, state: state?.word ?? "",
            attempts: Int(row.attempts), code: Int(row.code), message: row.message, takenAt: row.takenAtMs,
            bodyBytes: Int(row.bodyBytes), children: Int(row.children),
            takenText: WallTime(milliseconds: row.takenAtMs).text,
            stateWord: state.map { words.text("operationState.\($0.word)") } ?? "", isDead: state == .dead)
    }
}
