import BackendCalls
import Foundation
import SyncModel

/// A push from the console's form or a program (C6).
struct PushInput: Decodable, Sendable {
    let bizType: String
    /// A user or device id; ignored for global data.
    var linkToken: String?
    var thirdMsgId: String?
    var payload: String?
    /// Base64, instead of `payload`.
    var binaryPayload: String?
    var iOS: Bool?
    var android: Bool?
    var appMinVersion: String?
    var appMaxVersion: String?
    /// 1 to 30; absent: the retention of the instance.
    var validDays: Int?
    /// For a roll-out of global data: percentages of the devices, rising to 100, such as `1, 10, 100`.
    var stages: String?
    /// Minutes between two stages; absent: an operator starts each stage.
    var everyMinutes: Int?
    /// Whether to return the expected result only.
    var dryRun: Bool?

    /// For the API's description.
    static let inputs = [
        RouteInput("bizType", required: true, "The Sync ID."),
        RouteInput("linkToken", "The user or device; not for global data."),
        RouteInput("thirdMsgId", "The data's unique id; required when the configuration is persistent."),
        RouteInput("payload", "The content, up to 4,096 characters."),
        RouteInput("binaryPayload", "The content as Base64, instead of payload."),
        RouteInput("iOS", .flag, "Sends to iOS; both or neither: to every system."),
        RouteInput("android", .flag, "Sends to Android."),
        RouteInput("appMinVersion", "Such as 10.2.1."), RouteInput("appMaxVersion", "Such as 11."),
        RouteInput("validDays", .whole, "1 to 30; absent: the retention of the instance."),
        RouteInput(
            "stages", "For a roll-out of global data: percentages of the devices, such as 1, 10, 100."),
        RouteInput("everyMinutes", .whole, "Minutes between two stages; absent: each stage is started by hand."),
        RouteInput("dryRun", .flag, "Only returns the expected result; nothing is stored."),
    ]

    /// The body of the API's call.
    struct Call: Encodable {
        let bizType: String
        let linkToken: String?
        let thirdMsgId: String
        let payload: String?
        let binaryPayload: String?
        let osType: String?
        let appMinVersion: String?
        let appMaxVersion: String?
        let validTimeEnd: Int64?
    }

    /// The call that makes this push.
    ///
    /// - Throws: `wrong` when both systems are off, the days are out of range, or the id or the content is missing.
    func call(of configuration: SyncConfiguration, at now: WallTime) throws(ConsoleFault) -> Call {
        let (toIOS, toAndroid) = (iOS ?? true, android ?? true)
        let both = toIOS == toAndroid
        guard toIOS || toAndroid || (iOS == nil && android == nil) else { throw .wrong("iOS", "fault.noSystem") }
        let days = validDays ?? 30
        guard (1...30).contains(days) else { throw .wrong("validDays", "fault.range", "1 – 30") }
        let id = (thirdMsgId ?? "").trimmed
        guard !id.isEmpty || !configuration.isPersistent else { throw .wrong("thirdMsgId", "fault.missing") }
        guard payload?.isEmpty == false || binaryPayload?.isEmpty == false else {
            throw .wrong("payload", "fault.missing")
        }
        return Call(
            bizType: bizType, linkToken: configuration.kind.isGlobal ? nil : (linkToken ?? "").trimmed,
            thirdMsgId: id.isEmpty ? "console-" + UUID().uuidString.lowercased() : id, payload: payload,
            binaryPayload: binaryPayload.map(Base64.withoutLineBreaks), osType: both ? nil : toIOS ? "iOS" : "Android",
            appMinVersion: given(appMinVersion), appMaxVersion: given(appMaxVersion),
            validTimeEnd: validDays.map { now.milliseconds + Int64($0) * 86_400_000 })
    }

    /// The requested stages; nil for a push without stages.
    ///
    /// - Throws: `wrong` when the stages are invalid or the configuration is not global; `refused` when the id is too
    ///   long.
    func plan(of configuration: SyncConfiguration, id: String) throws(ConsoleFault) -> RolloutPlan? {
        guard let stages, !stages.trimmed.isEmpty else { return nil }
        guard configuration.kind.isGlobal else { throw .wrong("stages", "fault.notGlobal") }
        guard let slots = RolloutPlan.stages(stages) else { throw .wrong("stages", "fault.stages") }
        let minutes = everyMinutes ?? 0
        guard (0...43_200).contains(minutes) else { throw .wrong("everyMinutes", "fault.range", "1 – 43200") }
        let plan = RolloutPlan(
            id: ThirdMessageID(id), stages: slots, interval: minutes == 0 ? nil : .seconds(Int64(minutes) * 60))
        guard RolloutPlan(id: ThirdMessageID("x"), stages: slots).fault == nil else {
            throw .wrong("stages", "fault.stages")
        }
        if let fault = plan.fault { throw .refused(fault, field: "thirdMsgId") }
        return plan
    }

    private func given(_ text: String?) -> String? {
        text.flatMap { $0.trimmed.isEmpty ? nil : $0.trimmed }
    }
}
