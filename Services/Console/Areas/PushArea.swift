import BackendCalls
import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Operate: a push made by a person, after a look at whom it would reach (spec C6, H7).
struct PushArea: Sendable {
    let desk: ControlDesk
    let intake: PushIntake

    /// The form.
    struct Form: Sendable {
        let configuration: ConfigurationItem
        let list: String
        let api: String
        let suggestedID: String
    }

    /// How many devices are in a state.
    struct State: Encodable, Sendable {
        let state: String
        let devices: Int64
        let detail: String
    }

    /// What became of a push, or would.
    struct Answer: Encodable, Sendable {
        let success: Bool
        let msg: String
        /// As the API for backends says it.
        let retryable: Bool
        let detail: String
        let thirdMsgId: String
        let oplogId: Int64?
        let dryRun: Bool
        /// Devices that get it now, of a dry run.
        let reached: Int64
        let states: [State]
        /// Connected devices that the first stage is for, of a dry run of a roll-out.
        var firstStage: Int64?
        /// Where its trace is.
        let trace: String?
        /// Where the roll-out is.
        var rollout: String?
    }

    var routes: [Route] {
        [
            Route(
                method: .get, pattern: RoutePattern("/instances/{instance}/configurations/{bizType}/operate"),
                access: .instance(.operations), summary: "The form of a push."
            ) { exchange throws(ConsoleFault) in
                let configuration = try desk.configuration(exchange.instanceID, exchange.part("bizType"))
                let form = Form(
                    configuration: ConfigurationItem(configuration, exchange.words),
                    list: Paths.page(exchange.instanceID, "configurations"),
                    api: "/api/v1" + Paths.page(exchange.instanceID, "pushes"),
                    suggestedID: "console-\(WallTime.now.milliseconds)")
                return .page(
                    PageContent(
                        template: "operate", title: "title.operate", detail: configuration.bizType.text,
                        tab: .configurations, instanceID: exchange.instanceID, content: form))
            },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/instances/{instance}/pushes"),
                access: .instance(.operations),
                summary:
                    "Makes a push, starts a roll-out, or says what it would meet; a global one takes the password.",
                inputs: PushInput.inputs, example: AnswerExamples.push
            ) { exchange throws(ConsoleFault) in try await push(exchange) },
        ]
    }

    private func push(_ exchange: Exchange) async throws(ConsoleFault) -> ConsoleAnswer {
        let visitor = try exchange.signedIn()
        let input = try exchange.input(PushInput.self)
        let configuration = try desk.configuration(exchange.instanceID, input.bizType)
        let call = try input.call(of: configuration, at: .now)
        guard let body = try? JSONEncoder().encode(call) else { throw .notJSON }
        let plan = try input.plan(of: configuration, id: call.thirdMsgId)
        let isDryRun = input.dryRun ?? false
        let scope = configuration.kind.isGlobal ? PushScope.global : .single
        if scope == .global, !isDryRun, !visitor.isConfirmed { throw .passwordNeeded }
        func answer(isDryRun: Bool) async throws(ConsoleFault) -> APIAnswer {
            let answer = await intake.answer(
                scope: scope, instanceID: exchange.instanceID.text, body: Array(body), isDryRun: isDryRun)
            guard answer.isAttempted else { throw .storeAway }
            guard answer.code.isSuccess || answer.code == .systemError else { throw Self.fault(answer) }
            return answer
        }
        // Its stages have ids of their own: without a look, everybody would get it a second time.
        if let known = try await rollout(call.thirdMsgId, of: configuration, visitor) {
            var shown = self.answer(.result(.duplicatedBizID), call, exchange, isDryRun: isDryRun)
            shown.rollout = RolloutItem.page(known.name)
            return .json(shown)
        }
        // What would be refused is not recorded as made.
        let preview = try await answer(isDryRun: true)
        if isDryRun {
            var shown = self.answer(preview, call, exchange, isDryRun: true)
            if let plan, preview.code != .duplicatedBizID {
                shown.firstStage = try await reached(by: plan, call, configuration, visitor)
            }
            return .json(shown)
        }
        guard preview.code != .duplicatedBizID else {
            return .json(self.answer(preview, call, exchange, isDryRun: false))
        }
        if let plan { return try await start(plan, call, configuration, exchange) }
        try await record(call, input, exchange, visitor)
        let made = try await answer(isDryRun: false)
        return .json(self.answer(made, call, exchange, isDryRun: false), status: 201)
    }

    /// A refusal's sentence begins with the member that it is about.
    static func fault(_ answer: APIAnswer) -> ConsoleFault {
        let detail = answer.detail ?? answer.code.rawValue
        let first = detail.prefix { $0 != " " }
        let members = [
            "bizType", "linkToken", "thirdMsgId", "payload", "binaryPayload", "appMinVersion", "appMaxVersion",
        ]
        return ConsoleFault(
            status: 422, code: answer.code.rawValue, word: "result.\(answer.code.rawValue)", detail: detail,
            isSentence: true, field: members.contains(String(first)) ? String(first) : nil)
    }

    private func record(
        _ call: PushInput.Call, _ input: PushInput, _ exchange: Exchange, _ visitor: Visitor
    ) async throws(ConsoleFault) {
        let payload = call.payload.map { Data($0.utf8) } ?? Data(base64Encoded: call.binaryPayload ?? "") ?? Data()
        let push = Mss_Bus_V1_RecordPush.with {
            $0.oplog.instanceID = exchange.instanceID.text
            $0.oplog.bizType = call.bizType
            $0.oplog.linkToken = call.linkToken ?? ""
            $0.oplog.thirdMessageID = call.thirdMsgId
            $0.payload = payload
            $0.binary = call.payload == nil
            $0.operatingSystem =
                call.osType.map { $0 == "iOS" ? .ios : .android } ?? Mss_Bus_V1_OperatingSystem.any
            $0.minimumVersion = call.appMinVersion ?? ""
            $0.maximumVersion = call.appMaxVersion ?? ""
            $0.validUntilMs = call.validTimeEnd ?? 0
        }
        _ = try await desk.operate(by: visitor) { $0.recordPush = push }
    }

    private func answer(
        _ answer: APIAnswer, _ call: PushInput.Call, _ exchange: Exchange, isDryRun: Bool
    ) -> Answer {
        var devices: [DeliveryState: Int64] = [:]
        for receiver in answer.trace?.receivers ?? [] { devices[receiver.state, default: 0] += 1 }
        for count in answer.trace?.counts ?? [] { devices[count.state, default: 0] += count.devices }
        let states = devices.sorted { $0.key.rawValue < $1.key.rawValue }.map {
            State(
                state: $0.key.code, devices: $0.value, detail: exchange.words.text("state.\($0.key.code)"))
        }
        let trace = Paths.page(
            exchange.instanceID, "trace",
            query: [("bizType", call.bizType), ("linkToken", call.linkToken), ("thirdMsgId", call.thirdMsgId)])
        return Answer(
            success: answer.code.isSuccess, msg: answer.code.rawValue, retryable: answer.isRetryable,
            detail: exchange.words.text(
                (isDryRun ? "dryRun." : "result.") + answer.code.rawValue,
                answer.detail.map { Sentences.text($0, in: exchange.language) } ?? ""),
            thirdMsgId: call.thirdMsgId, oplogId: answer.oplogID?.value, dryRun: isDryRun,
            reached: devices[.onItsWay] ?? 0, states: states, trace: isDryRun ? nil : trace)
    }
}
