import BackendCalls
import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Why did it not arrive? One oplog at its devices, as a timeline in words with what stands in the way on top (H7).
struct TraceArea: Sendable {
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
        let device: String
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
                summary: "How an oplog stands with its devices, and why.", queries: queries
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
        guard let trace = answer.trace, let id = answer.oplogID else {
            throw ConsoleFault(
                status: 404, code: "NO_SUCH_THING", word: "fault.noSuch.oplog", detail: answer.detail ?? "")
        }
        let words = exchange.words
        let bizType = query["bizType"] ?? ""
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
            back: query["linkToken"].map { token in
                let kind = desk.directory.configuration(instance.id, BizType(bizType))?.kind
                return Paths.page(
                    instance.id, "data",
                    query: [("by", kind?.needsUser == false ? "device" : "user"), ("id", token)])
            }, device: query["deviceId"] ?? "",
            recallAPI: "/api/v1"
                + Paths.page(instance.id, "recalls"),
            mayRecall: trace.recalledAt == nil
                && Access.instance(.operations).allows(exchange.visitor?.account, instance: instance.id))
    }

    /// What stands in the way of the device that is furthest, or that nothing does.
    private func reason(_ trace: TraceAnswer, _ words: Words) -> String {
        let isNobody = trace.receivers.isEmpty && trace.counts.isEmpty && trace.state == .notConnected
        return isNobody ? words.text("state.NOBODY") : words.text("state.\(trace.state.code)")
    }

    private func receiver(
        of receiver: TraceAnswer.Receiver, in trace: TraceAnswer, _ instanceID: InstanceID, _ words: Words
    ) -> Receiver {
        let reason = words.text("state.\(receiver.state.code)")
        func moment(_ at: WallTime?, _ word: String, _ detail: String = "") -> Moment? {
            at.map {
                Moment(at: $0.milliseconds, detail: words.text(word, detail), atText: $0.text, isBlock: false)
            }
        }
        var timeline = [
            moment(trace.acceptedAt, "moment.accepted"), moment(receiver.handedOutAt, "moment.handedOut"),
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
            timeline.append(
                Moment(
                    at: receiver.at?.milliseconds, detail: reason, atText: receiver.at?.text,
                    isBlock: ![.stored, .handedOut, .onItsWay].contains(receiver.state)))
        }
        return Receiver(
            deviceId: receiver.deviceID, connected: receiver.isConnected, state: receiver.state.code, detail: reason,
            timeline: timeline, isGood: receiver.state == .delivered,
            page: Paths.page(instanceID, "device", query: [("device", receiver.deviceID)]))
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
