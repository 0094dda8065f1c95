import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel

/// Roll-outs: their list, their progress and the operator's changes. `PushRoutes` starts them.
struct RolloutRoutes: Sendable {
    private static let rows: UInt32 = 100

    let control: ControlService

    /// The newest roll-outs of an instance.
    struct List: Encodable, Sendable {
        let rollouts: [RolloutItem]

        // For pages alone.
        let isEmpty: Bool
        let isCut: Bool
        let configurations: String

        private enum CodingKeys: String, CodingKey { case rollouts }
    }

    /// One roll-out.
    struct Page: Sendable {
        let rollout: RolloutItem
        let list: String
        let api: String
        let mayChange: Bool
    }

    private struct Input: Decodable {
        let bizType: String
        let thirdMsgId: String
        var stage: Int?
    }

    private static let names = [
        RouteInput("bizType", required: true, "The Sync ID."),
        RouteInput("thirdMsgId", required: true, "The roll-out's unique data id."),
    ]

    var routes: [Route] { readRoutes + changeRoutes }

    private var readRoutes: [Route] {
        let path = "/instances/{instance}"
        return [
            Route(
                method: .get, pattern: RoutePattern("\(path)/rollouts"), access: .instance(.viewer),
                summary: "Roll-outs."
            ) { request throws(ConsoleFault) in
                .page(
                    PageContent(
                        template: "rollouts", title: "title.rollouts", tab: .configurations,
                        instanceID: request.instanceID, content: try await list(request)))
            },
            Route(
                method: .get, pattern: RoutePattern("\(path)/rollout"), access: .instance(.viewer),
                summary: "One roll-out."
            ) { request throws(ConsoleFault) in
                let rollout = try await one(request)
                let content = Page(
                    rollout: rollout, list: Paths.page(request.instanceID, "rollouts"),
                    api: "/api/v1" + Paths.page(request.instanceID, "rollouts"),
                    mayChange: Access.instance(.operations).allows(
                        request.principal?.account, instance: request.instanceID))
                return .page(
                    PageContent(
                        template: "rollout", title: "title.rollout", detail: rollout.thirdMsgId, tab: .configurations,
                        instanceID: request.instanceID, content: content))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1\(path)/rollouts"), access: .instance(.viewer),
                summary: "The newest 100 roll-outs of global pushes, without figures.", example: AnswerExamples.rollouts
            ) { request throws(ConsoleFault) in .json(try await list(request)) },
            Route(
                method: .get, pattern: RoutePattern("/api/v1\(path)/rollout"), access: .instance(.viewer),
                summary:
                    "One roll-out, with the number of devices that were sent each stage and that confirmed it, up to "
                    + "100,000.",
                queries: Self.names, example: AnswerExamples.rollout
            ) { request throws(ConsoleFault) in .json(try await one(request)) },
        ]
    }

    private var changeRoutes: [Route] {
        let path = "/api/v1/instances/{instance}/rollouts"
        return [
            Route(
                method: .post, pattern: RoutePattern("\(path)/widen"), access: .instance(.operations),
                needsPassword: true, summary: "Starts the next stage of a roll-out.",
                inputs: Self.names + [
                    RouteInput(
                        "stage", .whole, required: true,
                        "The stage to start, 2 for the second; a started stage is not started again.")
                ], example: AnswerExamples.rollout
            ) { request throws(ConsoleFault) in
                try await change(request) { input throws(ConsoleFault) in
                    guard let stage = input.stage.flatMap(UInt32.init(exactly:)) else {
                        throw .wrong("stage", "fault.missing")
                    }
                    return .widenToStage(stage)
                }
            },
            Route(
                method: .post, pattern: RoutePattern("\(path)/pause"), access: .instance(.operations),
                summary: "Pauses a roll-out: no stage starts until it is resumed, and the wait stops.",
                inputs: Self.names,
                example: AnswerExamples.rollout
            ) { request throws(ConsoleFault) in try await change(request) { _ in .pause(true) } },
            Route(
                method: .post, pattern: RoutePattern("\(path)/resume"), access: .instance(.operations),
                needsPassword: true, summary: "Resumes a roll-out with the rest of its wait.", inputs: Self.names,
                example: AnswerExamples.rollout
            ) { request throws(ConsoleFault) in try await change(request) { _ in .resume(true) } },
            Route(
                method: .post, pattern: RoutePattern("\(path)/stop"), access: .instance(.operations),
                summary: "Ends a roll-out permanently, and recalls its stages.",
                inputs: Self.names, example: AnswerExamples.rollout
            ) { request throws(ConsoleFault) in try await change(request) { _ in .stop(true) } },
        ]
    }

    // MARK: Reading

    private func list(_ request: ConsoleRequest) async throws(ConsoleFault) -> List {
        let instance = try control.instance(request.instanceID)
        let reply = try await control.operate(by: try request.signedIn()) {
            $0.rollouts.instanceID = instance.id.text
            $0.rollouts.limit = Self.rows
        }
        let items = reply.rollouts.rollouts.compactMap { Rollout(bus: $0) }.map { RolloutItem($0, request.words) }
        return List(
            rollouts: items, isEmpty: items.isEmpty, isCut: items.count >= Int(Self.rows),
            configurations: Paths.page(instance.id, "configurations"))
    }

    private func one(_ request: ConsoleRequest) async throws(ConsoleFault) -> RolloutItem {
        let instance = try control.instance(request.instanceID)
        let name = Rollout.Name(
            instanceID: instance.id, bizType: BizType(request.query["bizType"] ?? ""),
            id: ThirdMessageID(request.query["thirdMsgId"] ?? ""))
        guard let rollout = try await control.rollout(name, for: try request.signedIn()) else {
            throw .noSuch("rollout", name.id.text)
        }
        return RolloutItem(rollout, request.words, hasFigures: true)
    }

    // MARK: Changes

    private func change(
        _ request: ConsoleRequest,
        _ way: (Input) throws(ConsoleFault) -> Mss_Bus_V1_ChangeRollout.OneOf_Way
    ) async throws(ConsoleFault) -> ConsoleAnswer {
        let input = try request.input(Input.self)
        let command = Mss_Bus_V1_ChangeRollout.with {
            $0.name.instanceID = request.instanceID.text
            $0.name.bizType = input.bizType
            $0.name.thirdMessageID = input.thirdMsgId
        }
        let chosen = try way(input)
        let reply = try await control.operate(by: try request.signedIn()) {
            $0.changeRollout = command
            $0.changeRollout.way = chosen
        }
        return .json(RolloutItem(try Self.rollout(of: reply), request.words))
    }

    /// The changed roll-out of a reply.
    ///
    /// - Throws: `refused` with the store's reason; `notKnown` when a gateway did not acknowledge the change.
    static func rollout(of reply: Mss_Bus_V1_Reply) throws(ConsoleFault) -> Rollout {
        guard reply.rollout.refusal.isEmpty else { throw .refused(reply.rollout.refusal) }
        guard !reply.rollout.uncertain, let rollout = Rollout(bus: reply.rollout.rollout) else { throw .notKnown }
        return rollout
    }
}
