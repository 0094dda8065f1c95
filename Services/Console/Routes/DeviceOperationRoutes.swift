import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel

/// Device operations: changes that users made on devices, and the tenant's results.
struct DeviceOperationRoutes: Sendable {
    private static let rows: UInt32 = 200

    let control: ControlService

    /// One device operation.
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
        /// The code of the tenant's last answer; 0: there was none.
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

    /// The results of the operations of one component on one UTC day.
    struct Day: Encodable, Sendable {
        let day: String
        let component: String
        let accepted: Int64
        let refused: Int64
        /// Operations that failed for good. One that a retry completes counts as accepted or refused as well.
        let dead: Int64
        /// Calls of the tenant.
        let attempts: Int64
        /// The average time from the acceptance of an operation to its result.
        let averageMilliseconds: Int64

        init(_ day: Mss_Bus_V1_DeviceOperationDay) {
            self.day = day.day
            component = day.component
            (accepted, refused, dead, attempts) = (day.accepted, day.refused, day.dead, day.attempts)
            averageMilliseconds = day.waitedMs / max(1, day.accepted + day.refused + day.dead)
        }
    }

    /// A state for the filter.
    struct Choice: Sendable {
        let state: String
        let name: String
        let isCurrent: Bool
    }

    /// The newest operations.
    struct List: Encodable, Sendable {
        let operations: [Operation]
        /// Operations of the whole instance that wait for the tenant, and those that failed for good.
        let waiting: Int64
        let dead: Int64
        /// The last 31 days, the newest first.
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
                method: .get, pattern: RoutePattern(path), access: .instance(.viewer), summary: "Device operations."
            ) { request throws(ConsoleFault) in
                .page(
                    PageContent(
                        template: "operations", title: "title.deviceOperations", tab: .data,
                        instanceID: request.instanceID, content: try await list(request)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + path), access: .instance(.viewer),
                summary: "The newest 200 device operations.",
                queries: [
                    RouteInput("state", "Only in this state: waiting, answered, accepted, refused or dead."),
                    RouteInput("before", .whole, "Only operations with a lower number."),
                ], example: AnswerExamples.deviceOperations
            ) { request throws(ConsoleFault) in .json(try await list(request)) },
            Route(
                method: .post, pattern: RoutePattern("/api/v1\(path)/retry"), access: .instance(.operations),
                summary: "Calls the tenant again for an operation that was given up.",
                inputs: [
                    RouteInput("deviceId", required: true, "As listed."),
                    RouteInput("operationId", required: true, "As listed."),
                ]
            ) { request throws(ConsoleFault) in
                let input = try request.input(Input.self)
                let name = Mss_Bus_V1_DeviceOperationName.with {
                    $0.instanceID = request.instanceID.text
                    $0.deviceID = input.deviceId
                    $0.operationID = input.operationId
                }
                let reply = try await control.relay(by: try request.signedIn()) { $0.retry = name }
                guard reply.deviceOperation.refusal.isEmpty else {
                    throw .noSuch("deadOperation", input.operationId)
                }
                return .done
            },
        ]
    }

    private func list(_ request: ConsoleRequest) async throws(ConsoleFault) -> List {
        let instance = try control.instance(request.instanceID)
        let state = DeviceOperationState(word: request.query["state"] ?? "")
        let before = request.query["before"].flatMap { Int64($0) } ?? 0
        let reply = try await control.relay(by: try request.signedIn()) {
            $0.list.instanceID = instance.id.text
            $0.list.state = UInt32(state?.rawValue ?? 0)
            $0.list.before = before
            $0.list.limit = Self.rows
        }.deviceOperations
        let words = request.words
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
            mayChange: Access.instance(.operations).allows(request.principal?.account, instance: instance.id))
    }
}

extension DeviceOperationRoutes.Operation {
    init(_ row: Mss_Bus_V1_DeviceOperationRow, _ words: PageTexts) {
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
