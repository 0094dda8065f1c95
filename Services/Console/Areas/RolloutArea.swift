import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel

/// Global pushes that go out in stages: how far they are, and what people do with them. Operate starts one.
struct RolloutArea: Sendable {
    private static let rows: UInt32 = 100

    let desk: ControlDesk

    /// The newest of an instance.
    struct List: Encodable, Sendable {
        let rollouts: [RolloutItem]

        // For pages alone.
        let isEmpty: Bool
        let isCut: Bool
        let configurations: String

        private enum CodingKeys: String, CodingKey { case rollouts }
    }

    /// One of them.
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

    var routes: [Route] { looks + changes }

    private var looks: [Route] {
        let path = "/instances/{instance}"
        return [
            Route(
                method: .get, pattern: RoutePattern("\(path)/rollouts"), access: .instance(.viewer),
                summary: "Roll-outs."
            ) { exchange throws(ConsoleFault) in
                .page(
                    PageContent(
                        template: "rollouts", title: "title.rollouts", tab: .configurations,
                        instanceID: exchange.instanceID, content: try await list(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern("\(path)/rollout"), access: .instance(.viewer),
                summary: "One roll-out."
            ) { exchange throws(ConsoleFault) in
                let rollout = try await one(exchange)
                let content = Page(
                    rollout: rollout, list: Paths.page(exchange.instanceID, "rollouts"),
                    api: "/api/v1" + Paths.page(exchange.instanceID, "rollouts"),
                    mayChange: Access.instance(.operations).allows(
                        exchange.visitor?.account, instance: exchange.instanceID))
                return .page(
                    PageContent(
                        template: "rollout", title: "title.rollout", detail: rollout.thirdMsgId, tab: .configurations,
                        instanceID: exchange.instanceID, content: content))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1\(path)/rollouts"), access: .instance(.viewer),
                summary: "The newest 100 roll-outs of global pushes, without figures.", example: AnswerExamples.rollouts
            ) { exchange throws(ConsoleFault) in .json(try await list(exchange)) },
            Route(
                method: .get, pattern: RoutePattern("/api/v1\(path)/rollout"), access: .instance(.viewer),
                summary:
                    "One roll-out, with how many devices were sent each stage and how many apps confirmed it, up to "
                    + "100,000.",
                queries: Self.names, example: AnswerExamples.rollout
            ) { exchange throws(ConsoleFault) in .json(try await one(exchange)) },
        ]
    }

    private var changes: [Route] {
        let path = "/api/v1/instances/{instance}/rollouts"
        return [
            Route(
                method: .post, pattern: RoutePattern("\(path)/widen"), access: .instance(.operations),
                needsPassword: true, summary: "Makes the next stage of a roll-out.",
                inputs: Self.names + [
                    RouteInput(
                        "stage", .whole, required: true,
                        "The stage to make, 2 for the second; one that was made is not made again.")
                ], example: AnswerExamples.rollout
            ) { exchange throws(ConsoleFault) in
                try await change(exchange) { input throws(ConsoleFault) in
                    guard let stage = input.stage.flatMap(UInt32.init(exactly:)) else {
                        throw .wrong("stage", "fault.missing")
                    }
                    return .widenToStage(stage)
                }
            },
            Route(
                method: .post, pattern: RoutePattern("\(path)/pause"), access: .instance(.operations),
                summary: "No further stage comes until it is resumed; the clock stands.", inputs: Self.names,
                example: AnswerExamples.rollout
            ) { exchange throws(ConsoleFault) in try await change(exchange) { _ in .pause(true) } },
            Route(
                method: .post, pattern: RoutePattern("\(path)/resume"), access: .instance(.operations),
                needsPassword: true, summary: "Goes on, with the wait that was left.", inputs: Self.names,
                example: AnswerExamples.rollout
            ) { exchange throws(ConsoleFault) in try await change(exchange) { _ in .resume(true) } },
            Route(
                method: .post, pattern: RoutePattern("\(path)/stop"), access: .instance(.operations),
                summary: "Ends a roll-out for good, and recalls its stages where they have not arrived.",
                inputs: Self.names, example: AnswerExamples.rollout
            ) { exchange throws(ConsoleFault) in try await change(exchange) { _ in .stop(true) } },
        ]
    }

    // MARK: What there is

    private func list(_ exchange: Exchange) async throws(ConsoleFault) -> List {
        let instance = try desk.instance(exchange.instanceID)
        let reply = try await desk.operate(by: try exchange.signedIn()) {
            $0.rollouts.instanceID = instance.id.text
            $0.rollouts.limit = Self.rows
        }
        let items = reply.rollouts.rollouts.compactMap { Rollout(bus: $0) }.map { RolloutItem($0, exchange.words) }
        return List(
            rollouts: items, isEmpty: items.isEmpty, isCut: items.count >= Int(Self.rows),
            configurations: Paths.page(instance.id, "configurations"))
    }

    private func one(_ exchange: Exchange) async throws(ConsoleFault) -> RolloutItem {
        let instance = try desk.instance(exchange.instanceID)
        let name = Rollout.Name(
            instanceID: instance.id, bizType: BizType(exchange.query["bizType"] ?? ""),
            id: ThirdMessageID(exchange.query["thirdMsgId"] ?? ""))
        guard let rollout = try await desk.rollout(name, for: try exchange.signedIn()) else {
            throw .noSuch("rollout", name.id.text)
        }
        return RolloutItem(rollout, exchange.words, hasFigures: true)
    }

    // MARK: Changes

    private func change(
        _ exchange: Exchange,
        _ way: (Input) throws(ConsoleFault) -> Mss_Bus_V1_ChangeRollout.OneOf_Way
    ) async throws(ConsoleFault) -> ConsoleAnswer {
        let input = try exchange.input(Input.self)
        let request = Mss_Bus_V1_ChangeRollout.with {
            $0.name.instanceID = exchange.instanceID.text
            $0.name.bizType = input.bizType
            $0.name.thirdMessageID = input.thirdMsgId
        }
        let chosen = try way(input)
        let reply = try await desk.operate(by: try exchange.signedIn()) {
            $0.changeRollout = request
            $0.changeRollout.way = chosen
        }
        return .json(RolloutItem(try Self.rollout(of: reply), exchange.words))
    }

    /// What a reply has of a roll-out that was changed.
    ///
    /// - Throws: `refused` with the store's reason; `notKnown` where a gateway did not say that it knows.
    static func rollout(of reply: Mss_Bus_V1_Reply) throws(ConsoleFault) -> Rollout {
        guard reply.rollout.refusal.isEmpty else { throw .refused(reply.rollout.refusal) }
        guard !reply.rollout.uncertain, let rollout = Rollout(bus: reply.rollout.rollout) else { throw .notKnown }
        return rollout
    }
}
