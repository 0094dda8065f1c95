import BackendCalls
import BusMessages
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Operate: a push by an operator, after a preview of its receivers (C6, H7).
struct PushRoutes: Sendable {
    let control: ControlService
    let intake: PushIntake

    /// The form.
    struct Form: Sendable {
        let configuration: ConfigurationItem
        let list: String
        let api: String
        let suggestedID: String
    }

    /// The number of devices in a state.
    struct State: Encodable, Sendable {
        let state: String
        let devices: Int64
        let detail: String
    }

    /// The result of a push, or its expected result.
    struct Answer: Encodable, Sendable {
        let success: Bool
        let msg: String
        /// As in the answers of the API for backends.
        let retryable: Bool
        let detail: String
        let thirdMsgId: String
        let oplogId: Int64?
        let dryRun: Bool
        /// Only in a dry run: the number of devices that receive the push now.
        let reached: Int64
        let states: [State]
        /// Only in a dry run of a roll-out: the number of connected devices of the first stage.
        var firstStage: Int64?
        /// The path of the trace.
        let trace: String?
        /// The path of the roll-out.
        var rollout: String?
    }

    var routes: [Route] {
        [
            Route(
                method: .get, pattern: RoutePattern("/instances/{instance}/configurations/{bizType}/operate"),
                access: .instance(.operations), summary: "The form of a push."
            ) { request throws(ConsoleFault) in
                let configuration = try control.configuration(request.instanceID, request.part("bizType"))
                let form = Form(
                    configuration: ConfigurationItem(configuration, request.words),
                    list: Paths.page(request.instanceID, "configurations"),
                    api: "/api/v1" + Paths.page(request.instanceID, "pushes"),
                    suggestedID: "console-\(WallTime.now.milliseconds)")
                return .page(
                    PageContent(
                        template: "operate", title: "title.operate", detail: configuration.bizType.text,
                        tab: .configurations, instanceID: request.instanceID, content: form))
            },
            Route(
                method: .post, pattern: RoutePattern("/api/v1/instances/{instance}/pushes"),
                access: .instance(.operations),
                summary:
                    "Makes a push, starts a roll-out, or previews the result; a global push needs the password again.",
                inputs: PushInput.inputs, example: AnswerExamples.push
            ) { request throws(ConsoleFault) in try await push(request) },
        ]
    }

    private func push(_ request: ConsoleRequest) async throws(ConsoleFault) -> ConsoleAnswer {
        let principal = try request.signedIn()
        let input = try request.input(PushInput.self)
        let configuration = try control.configuration(request.instanceID, input.bizType)
        let call = try input.call(of: configuration, at: .now)
        guard let body = try? JSONEncoder().encode(call) else { throw .notJSON }
        let plan = try input.plan(of: configuration, id: call.thirdMsgId)
        let isDryRun = input.dryRun ?? false
        let scope = configuration.kind.isGlobal ? PushScope.global : .single
        if scope == .global, !isDryRun, !principal.isConfirmed { throw .passwordNeeded }
        func answer(isDryRun: Bool) async throws(ConsoleFault) -> APIAnswer {
            let answer = await intake.answer(
                scope: scope, instanceID: request.instanceID.text, body: Array(body), isDryRun: isDryRun)
            guard answer.isAttempted else { throw .storeAway }
            guard answer.code.isSuccess || answer.code == .systemError else { throw Self.fault(answer) }
            return answer
        }
        // The stages of a roll-out have other ids, so without this check all devices would receive the push again.
        if let known = try await rollout(call.thirdMsgId, of: configuration, principal) {
            var shown = self.answer(.result(.duplicatedBizID), call, request, isDryRun: isDryRun)
            shown.rollout = RolloutItem.page(known.name)
            return .json(shown)
        }
        // The dry run comes first, so that a refused push leaves no audit record.
        let preview = try await answer(isDryRun: true)
        if isDryRun {
            var shown = self.answer(preview, call, request, isDryRun: true)
            if let plan, preview.code != .duplicatedBizID {
                shown.firstStage = try await reached(by: plan, call, configuration, principal)
            }
            return .json(shown)
        }
        guard preview.code != .duplicatedBizID else {
            return .json(self.answer(preview, call, request, isDryRun: false))
        }
        if let plan { return try await start(plan, call, configuration, request) }
        try await record(call, input, request, principal)
        let made = try await answer(isDryRun: false)
        return .json(self.answer(made, call, request, isDryRun: false), status: 201)
    }

    /// The fault for a refusal; its field is the first word of the detail, when that is the name of a member.
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
        _ call: PushInput.Call, _ input: PushInput, _ request: ConsoleRequest, _ principal: RequestPrincipal
    ) async throws(ConsoleFault) {
        let payload = call.payload.map { Data($0.utf8) } ?? Data(base64Encoded: call.binaryPayload ?? "") ?? Data()
        let push = Mss_Bus_V1_RecordPush.with {
            $0.oplog.instanceID = request.instanceID.text
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
        _ = try await control.operate(by: principal) { $0.recordPush = push }
    }

    private func answer(
        _ answer: APIAnswer, _ call: PushInput.Call, _ request: ConsoleRequest, isDryRun: Bool
    ) -> Answer {
        var devices: [DeliveryState: Int64] = [:]
        for receiver in answer.trace?.receivers ?? [] { devices[receiver.state, default: 0] += 1 }
        for count in answer.trace?.counts ?? [] { devices[count.state, default: 0] += count.devices }
        let states = devices.sorted { $0.key.rawValue < $1.key.rawValue }.map {
            State(
                state: $0.key.code, devices: $0.value, detail: request.words.text("state.\($0.key.code)"))
        }
        let trace = Paths.page(
            request.instanceID, "trace",
            query: [("bizType", call.bizType), ("linkToken", call.linkToken), ("thirdMsgId", call.thirdMsgId)])
        return Answer(
            success: answer.code.isSuccess, msg: answer.code.rawValue, retryable: answer.isRetryable,
            detail: request.words.text(
                (isDryRun ? "dryRun." : "result.") + answer.code.rawValue,
                answer.detail.map { SentenceTranslations.text($0, in: request.language) } ?? ""),
            thirdMsgId: call.thirdMsgId, oplogId: answer.oplogID?.value, dryRun: isDryRun,
            reached: devices[.onItsWay] ?? 0, states: states, trace: isDryRun ? nil : trace)
    }
}
