import BackendCalls
import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Why did it not arrive? One oplog at its devices, as a timeline in words with what stands in the way on top (H7).
struct TraceArea: Sendable {
    /// Devices of a user whose way is shown at the most.
    private static let devicesMax = 20
    /// The states that say most of a user's devices, the most telling first.
    private static let furthest: [DeliveryState] = [.delivered, .stored, .handedOut, .onItsWay]

    let database: Database
    let desk: ControlDesk
    let operations: OperationIntake

    /// A moment of an oplog's way.
    struct Moment: Encodable, Sendable, Hashable {
        /// Milliseconds since 1970; absent: it has not happened.
        let at: Int64?
        let detail: String

        // For pages alone.
        let atText: String?
        let isBlock: Bool

        private enum CodingKeys: String, CodingKey { case at, detail }
    }

    /// The way to one device.
    struct Receiver: Encodable, Sendable {
        let deviceId: String
        let connected: Bool
        let state: String
        let detail: String
        let timeline: [Moment]

        // For pages alone.
        let isGood: Bool
        let page: String

        private enum CodingKeys: String, CodingKey { case deviceId, connected, state, detail, timeline }
    }

    /// How many devices are in a state.
    struct Count: Encodable, Sendable {
        let state: String
        let devices: Int64
        let detail: String
    }

    /// The whole trace.
    struct Trace: Encodable, Sendable {
        let bizType: String
        let linkToken: String?
        let thirdMsgId: String
        let oplogId: Int64
        let acceptedAt: Int64?
        let validUntil: Int64?
        let recalledAt: Int64?
        let state: String
        /// The reason in words.
        let detail: String
        let receivers: [Receiver]
        let counts: [Count]

        // For pages alone.
        let isGood: Bool
        let isBad: Bool
        let isGlobal: Bool
        let acceptedText: String?
        let validText: String?
        let back: String?
        let backName: String?
        let device: String
        let user: String
        let hasCounts: Bool
        let recallAPI: String
        let mayRecall: Bool

        private enum CodingKeys: String, CodingKey {
            case bizType, linkToken, thirdMsgId, oplogId, acceptedAt, validUntil, recalledAt, state, detail, receivers
            case counts
        }
    }

    private struct RecallInput: Decodable {
        let bizType: String
        let linkToken: String?
        let thirdMsgId: String
    }

    private struct RecallCall: Encodable {
        let bizType: String
        let linkToken: String?
        let thirdMsgId: String
    }

    var routes: [Route] {
        let queries = [
            RouteInput("bizType", required: true, "The Sync ID."),
            RouteInput("linkToken", "The user or device; not for global data."),
            RouteInput("thirdMsgId", "The data's unique id, or:"), RouteInput("oplogId", .whole, "The oplog's id."),
            RouteInput("deviceId", "Only of this device; needed to see one device of a global push."),
            RouteInput("user", "Of a global push: the devices of this user."),
        ]
        return [
            Route(
                method: .get, pattern: RoutePattern("/instances/{instance}/trace"), access: .instance(.viewer),
                summary: "The trace of an oplog."
            ) { exchange throws(ConsoleFault) in
                .page(
                    PageContent(
                        template: "trace", title: "title.trace", tab: .data, instanceID: exchange.instanceID,
                        content: try await trace(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1/instances/{instance}/trace"), access: .instance(.viewer),
                summary: "How an oplog stands with its devices, and why.", queries: queries,
                example: AnswerExamples.trace
            ) { exchange throws(ConsoleFault) in .json(try await trace(exchange)) },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/instances/{instance}/recalls"),
                access: .instance(.operations),
                summary: "Takes an oplog back: who has not stored it never gets it; others get a tombstone.",
                inputs: Array(queries.prefix(3))
            ) { exchange throws(ConsoleFault) in try await recall(exchange) },
        ]
    }

    private func trace(_ exchange: Exchange) async throws(ConsoleFault) -> Trace {
        let instance = try desk.instance(exchange.instanceID)
        let query = exchange.query
        let answer = await operations.trace { $0 == "instanceId" ? instance.id.text : query[$0] }
        guard answer.isAttempted else { throw .storeAway }
        guard var trace = answer.trace, let id = answer.oplogID else {
            throw ConsoleFault(
                status: 404, code: "NO_SUCH_THING", word: "fault.noSuch.oplog", detail: answer.detail ?? "")
        }
        let words = exchange.words
        let bizType = query["bizType"] ?? ""
        let user = trace.isGlobal ? (query["user"] ?? "").trimmed : ""
        if !user.isEmpty, query["deviceId"] == nil {
            trace = try await self.trace(trace, id, of: user, exchange)
        }
        let receivers = trace.receivers.map { receiver(of: $0, in: trace, instance.id, words) }
        return Trace(
            bizType: bizType, linkToken: trace.isGlobal ? nil : query["linkToken"],
            thirdMsgId: trace.thirdMessageID ?? "", oplogId: id.value, acceptedAt: trace.acceptedAt?.milliseconds,
            validUntil: trace.validUntil?.milliseconds, recalledAt: trace.recalledAt?.milliseconds,
            state: trace.state.code, detail: reason(trace, words), receivers: receivers,
            counts: trace.counts.map {
                Count(state: $0.state.code, devices: $0.devices, detail: words.text("state.\($0.state.code)"))
            }, isGood: trace.state == .delivered,
            isBad: ![.delivered, .stored, .handedOut, .onItsWay].contains(trace.state), isGlobal: trace.isGlobal,
            acceptedText: trace.acceptedAt?.text, validText: trace.validUntil?.text,
            back: back(exchange, user: user), backName: backName(exchange, user: user),
            device: query["deviceId"] ?? "", user: user, hasCounts: !trace.counts.isEmpty,
            recallAPI: "/api/v1"
                + Paths.page(instance.id, "recalls"),
            mayRecall: trace.recalledAt == nil
                && Access.instance(.operations).allows(exchange.visitor?.account, instance: instance.id))
    }

    /// A global push as it stands with the devices of one user: those that are connected, and those that took it.
    private func trace(
        _ trace: TraceAnswer, _ id: OplogID, of user: String, _ exchange: Exchange
    ) async throws(ConsoleFault) -> TraceAnswer {
        let (instanceID, bizType) = (exchange.instanceID, exchange.query["bizType"] ?? "")
        let target = TargetAddress(instanceID: instanceID, kind: .user, target: user)
        let query = FigureStore.devices(of: target, thatPulled: id, of: BizType(bizType), limit: Self.devicesMax)
        let connected = try await desk.operate(by: try exchange.signedIn()) {
            $0.devices.instanceID = instanceID.text
            $0.devices.userID = user
            $0.devices.limit = UInt32(Self.devicesMax)
        }.devices.devices.map(\.deviceID)
        let devices = Set(try await database.run(query).map(\.text)).union(connected).sorted()
        var merged = trace
        (merged.receivers, merged.counts, merged.state) = ([], [], .notConnected)
        for device in devices.prefix(Self.devicesMax) {
            let asked = [
                "instanceId": instanceID.text, "bizType": bizType, "oplogId": "\(id.value)", "deviceId": device,
            ]
            let answer = await operations.trace { asked[$0] }
            guard answer.isAttempted else { throw .storeAway }
            merged.receivers += answer.trace?.receivers ?? []
        }
        let states = merged.receivers.map(\.state)
        merged.state = Self.furthest.first(where: states.contains) ?? states.first ?? .notConnected
        return merged
    }

    /// The list that the trace was chosen from.
    private func back(_ exchange: Exchange, user: String) -> String? {
        guard let id = backName(exchange, user: user) else { return nil }
        let kind = desk.directory.configuration(exchange.instanceID, BizType(exchange.query["bizType"] ?? ""))?.kind
        let isOfDevice = user.isEmpty && (kind?.needsUser == false || exchange.query["linkToken"] == nil)
        return Paths.page(
            exchange.instanceID, "data", query: [("by", isOfDevice ? "device" : "user"), ("id", id)])
    }

    private func backName(_ exchange: Exchange, user: String) -> String? {
        exchange.query["linkToken"] ?? (user.isEmpty ? exchange.query["deviceId"] : user)
    }

    /// What stands in the way of the device that is furthest, or that nothing does.
    private func reason(_ trace: TraceAnswer, _ words: Words) -> String {
        let isNobody = trace.receivers.isEmpty && trace.counts.isEmpty && trace.state == .notConnected
        return isNobody ? words.text("state.NOBODY") : words.text("state.\(trace.state.code)")
    }

    private func receiver(
        of receiver: TraceAnswer.Receiver, in trace: TraceAnswer, _ instanceID: InstanceID, _ words: Words
    ) -> Receiver {
        Receiver(
            deviceId: receiver.deviceID, connected: receiver.isConnected, state: receiver.state.code,
            detail: words.text("state.\(receiver.state.code)"), timeline: Self.timeline(of: receiver, in: trace, words),
            isGood: receiver.state == .delivered,
            page: Paths.page(instanceID, "device", query: [("device", receiver.deviceID)]))
    }

    /// The way of an oplog to a device, moment by moment, with what stands in the way at its end; pure.
    static func timeline(
        of receiver: TraceAnswer.Receiver, in trace: TraceAnswer, _ words: Words
    ) -> [Moment] {
        func moment(_ at: WallTime?, _ word: String, _ detail: String = "") -> Moment? {
            at.map {
                Moment(at: $0.milliseconds, detail: words.text(word, detail), atText: $0.text, isBlock: false)
            }
        }
        var timeline = [
            moment(trace.acceptedAt, "moment.accepted"), moment(receiver.handedOutAt, "moment.handedOut"),
            // When a device stored it is not on record, only that it did.
            receiver.state == .delivered
                ? Moment(at: nil, detail: words.text("moment.stored"), atText: nil, isBlock: false) : nil,
            moment(trace.recalledAt, "moment.recalled"),
            receiver.state == .delivered ? moment(receiver.confirmedAt ?? receiver.at, "moment.confirmed") : nil,
        ].compactMap { $0 }
        if receiver.attempts > 1 {
            timeline.append(
                Moment(
                    at: nil, detail: words.text("moment.attempts", "\(receiver.attempts)"), atText: nil, isBlock: false)
            )
        }
        if receiver.state != .delivered {
            let at = receiver.state == .stored ? nil : receiver.at
            timeline.append(
                Moment(
                    at: at?.milliseconds, detail: words.text("state.\(receiver.state.code)"), atText: at?.text,
                    isBlock: ![.stored, .handedOut, .onItsWay].contains(receiver.state)))
        }
        return timeline
    }

    private func recall(_ exchange: Exchange) async throws(ConsoleFault) -> ConsoleAnswer {
        let visitor = try exchange.signedIn()
        let input = try exchange.input(RecallInput.self)
        let configuration = try desk.configuration(exchange.instanceID, input.bizType)
        let name = Mss_Bus_V1_OplogName.with {
            $0.instanceID = exchange.instanceID.text
            $0.bizType = input.bizType
            $0.linkToken = configuration.kind.isGlobal ? "" : input.linkToken ?? ""
            $0.thirdMessageID = input.thirdMsgId
        }
        let reply = try await desk.operate(by: visitor) { $0.recall = name }
        guard reply.recall.oplogID > 0 else { throw .noSuch("oplog", input.thirdMsgId) }
        guard !reply.recall.uncertain else { throw .notKnown }
        return .done
    }
}
