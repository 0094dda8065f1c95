import BackendCalls
import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// The delivery trace of one oplog: a timeline for each device, and the first obstacle (H7).
struct TraceRoutes: Sendable {
    /// The largest number of devices of a user in a trace.
    private static let devicesMax = 20
    /// The states of a user's devices that decide the state of the trace, in order of precedence.
    private static let furthest: [DeliveryState] = [.delivered, .stored, .handedOut, .onItsWay]

    let database: Database
    let control: ControlService
    let operations: OperationIntake

    /// An event in the timeline of an oplog.
    struct Moment: Encodable, Sendable, Hashable {
        /// Milliseconds since 1970; absent when the event has no known time.
        let at: Int64?
        let detail: String

        // For pages alone.
        let atText: String?
        let isBlock: Bool

        private enum CodingKeys: String, CodingKey { case at, detail }
    }

    /// The delivery to one device.
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

    /// The number of devices in a state.
    struct Count: Encodable, Sendable {
        let state: String
        let devices: Int64
        let detail: String
    }

    /// The trace of one oplog.
    struct Trace: Encodable, Sendable {
        let bizType: String
        let linkToken: String?
        let thirdMsgId: String
        let oplogId: Int64
        let acceptedAt: Int64?
        let validUntil: Int64?
        let recalledAt: Int64?
        let state: String
        /// The reason for the state, as text.
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
            RouteInput("thirdMsgId", "The data's unique id, unless oplogId is given."),
            RouteInput("oplogId", .whole, "The oplog's id."),
            RouteInput("deviceId", "Only this device; required to see one device of a global push."),
            RouteInput("user", "For a global push: the devices of this user."),
        ]
        return [
            Route(
                method: .get, pattern: RoutePattern("/instances/{instance}/trace"), access: .instance(.viewer),
                summary: "The trace of an oplog."
            ) { request throws(ConsoleFault) in
                .page(
                    PageContent(
                        template: "trace", title: "title.trace", tab: .data, instanceID: request.instanceID,
                        content: try await trace(request)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1/instances/{instance}/trace"), access: .instance(.viewer),
                summary: "The state of an oplog at its devices, with the reasons.", queries: queries,
                example: AnswerExamples.trace
            ) { request throws(ConsoleFault) in .json(try await trace(request)) },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/instances/{instance}/recalls"),
                access: .instance(.operations),
                summary:
                    "Recalls an oplog: devices that have not stored it never receive it; others receive a tombstone.",
                inputs: Array(queries.prefix(3))
            ) { request throws(ConsoleFault) in try await recall(request) },
        ]
    }

    private func trace(_ request: ConsoleRequest) async throws(ConsoleFault) -> Trace {
        let instance = try control.instance(request.instanceID)
        let query = request.query
        let answer = await operations.trace { $0 == "instanceId" ? instance.id.text : query[$0] }
        guard answer.isAttempted else { throw .storeAway }
        guard var trace = answer.trace, let id = answer.oplogID else {
            throw ConsoleFault(
                status: 404, code: "NO_SUCH_THING", word: "fault.noSuch.oplog", detail: answer.detail ?? "")
        }
        let words = request.words
        let bizType = query["bizType"] ?? ""
        let user = trace.isGlobal ? (query["user"] ?? "").trimmed : ""
        if !user.isEmpty, query["deviceId"] == nil {
            trace = try await self.trace(trace, id, of: user, request)
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
            back: back(request, user: user), backName: backName(request, user: user),
            device: query["deviceId"] ?? "", user: user, hasCounts: !trace.counts.isEmpty,
            recallAPI: "/api/v1"
                + Paths.page(instance.id, "recalls"),
            mayRecall: trace.recalledAt == nil
                && Access.instance(.operations).allows(request.principal?.account, instance: instance.id))
    }

    /// The trace of a global push for the devices of one user: those that are connected, and those that fetched it.
    private func trace(
        _ trace: TraceAnswer, _ id: OplogID, of user: String, _ request: ConsoleRequest
    ) async throws(ConsoleFault) -> TraceAnswer {
        let (instanceID, bizType) = (request.instanceID, request.query["bizType"] ?? "")
        let target = TargetAddress(instanceID: instanceID, kind: .user, target: user)
        let query = FigureStore.devices(of: target, thatPulled: id, of: BizType(bizType), limit: Self.devicesMax)
        let connected = try await control.operate(by: try request.signedIn()) {
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

    /// The path of the list that the trace was opened from.
    private func back(_ request: ConsoleRequest, user: String) -> String? {
        guard let id = backName(request, user: user) else { return nil }
        let kind = control.directory.configuration(request.instanceID, BizType(request.query["bizType"] ?? ""))?.kind
        let isOfDevice = user.isEmpty && (kind?.needsUser == false || request.query["linkToken"] == nil)
        return Paths.page(
            request.instanceID, "data", query: [("by", isOfDevice ? "device" : "user"), ("id", id)])
    }

    private func backName(_ request: ConsoleRequest, user: String) -> String? {
        request.query["linkToken"] ?? (user.isEmpty ? request.query["deviceId"] : user)
    }

    /// The text for the state of the trace.
    private func reason(_ trace: TraceAnswer, _ words: PageTexts) -> String {
        let isNobody = trace.receivers.isEmpty && trace.counts.isEmpty && trace.state == .notConnected
        return isNobody ? words.text("state.NOBODY") : words.text("state.\(trace.state.code)")
    }

    private func receiver(
        of receiver: TraceAnswer.Receiver, in trace: TraceAnswer, _ instanceID: InstanceID, _ words: PageTexts
    ) -> Receiver {
        Receiver(
            deviceId: receiver.deviceID, connected: receiver.isConnected, state: receiver.state.code,
            detail: words.text("state.\(receiver.state.code)"), timeline: Self.timeline(of: receiver, in: trace, words),
            isGood: receiver.state == .delivered,
            page: Paths.page(instanceID, "device", query: [("device", receiver.deviceID)]))
    }

    /// The timeline of an oplog for one device, with the obstacle at its end; pure.
    static func timeline(
        of receiver: TraceAnswer.Receiver, in trace: TraceAnswer, _ words: PageTexts
    ) -> [Moment] {
        func moment(_ at: WallTime?, _ word: String, _ detail: String = "") -> Moment? {
            at.map {
                Moment(at: $0.milliseconds, detail: words.text(word, detail), atText: $0.text, isBlock: false)
            }
        }
        var timeline = [
            moment(trace.acceptedAt, "moment.accepted"), moment(receiver.handedOutAt, "moment.handedOut"),
            // The store knows that a device has stored the oplog, but not the time.
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

    private func recall(_ request: ConsoleRequest) async throws(ConsoleFault) -> ConsoleAnswer {
        let principal = try request.signedIn()
        let input = try request.input(RecallInput.self)
        let configuration = try control.configuration(request.instanceID, input.bizType)
        let name = Mss_Bus_V1_OplogName.with {
            $0.instanceID = request.instanceID.text
            $0.bizType = input.bizType
            $0.linkToken = configuration.kind.isGlobal ? "" : input.linkToken ?? ""
            $0.thirdMessageID = input.thirdMsgId
        }
        let reply = try await control.operate(by: principal) { $0.recall = name }
        guard reply.recall.oplogID > 0 else { throw .noSuch("oplog", input.thirdMsgId) }
        guard !reply.recall.uncertain else { throw .notKnown }
        return .done
    }
}
