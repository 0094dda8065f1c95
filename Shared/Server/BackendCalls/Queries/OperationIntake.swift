package import BusMessages
package import ServiceKit
import SwiftProtobuf
package import SyncModel

/// Processes backend queries: traces, dry runs, recalls and revocations (H7).
package struct OperationIntake: Sendable {
    /// Sends one command to the oplog writers and waits for the reply.
    package typealias Ask =
        @Sendable (_ fill: @Sendable (inout Mss_Bus_V1_OperationCommand) -> Void) async throws(BusError) ->
        Mss_Bus_V1_Reply

    let directory: any ConfigurationLookup
    let ask: Ask

    package init(directory: any ConfigurationLookup, ask: @escaping Ask) {
        self.directory = directory
        self.ask = ask
    }

    /// Sends the commands over the bus.
    ///
    /// - Parameters:
    ///   - queue: `operation` for backends, `people` for operators.
    ///   - actor: the actor in the audit records.
    package init(
        directory: any ConfigurationLookup, bus: MessageBus, queue: CommandQueue = .operation, actor: OperationActor
    ) {
        let client = CommandClient(bus: bus, actor: actor)
        self.init(directory: directory) { fill throws(BusError) in try await client.operate(on: queue, fill) }
    }

    // MARK: Trace

    /// The delivery trace of an oplog: its state with each receiver.
    ///
    /// - Parameter parameter: returns a parameter of the call by name; nil if it is absent or unreadable.
    package func trace(_ parameter: (_ name: String) -> String?) async -> APIAnswer {
        guard directory.isLoaded else { return Self.starting }
        let name: Mss_Bus_V1_OplogName
        let device = parameter("deviceId") ?? ""
        do throws(PushRefusal) {
            guard !device.utf8.contains(0), device.utf16.count <= Limits.linkTokenUnits else {
                throw PushRefusal(.argsIsNull, "deviceId contains NUL or is longer than any device's; check it.")
            }
            name = try self.name(
                instanceID: parameter("instanceId"), bizType: parameter("bizType"),
                linkToken: parameter("linkToken"), thirdMessageID: parameter("thirdMsgId"),
                oplogID: parameter("oplogId"))
        } catch {
            return error.answer
        }
        do throws(BusError) {
            let reply = try await ask {
                $0.trace.oplog = name
                $0.trace.deviceID = device
            }
            guard case .trace(let trace)? = reply.body, trace.channelID > 0,
                let traced = TraceAnswer(trace, isDryRun: false, isGlobal: trace.global)
            else { return Self.noSuchOplog }
            var answer = APIAnswer.result(.success, oplogID: OplogID(trace.oplog.id), detail: traced.detail)
            answer.trace = traced
            return answer
        } catch {
            return Self.storeAway
        }
    }

    // MARK: Dry run

    /// The expected result of a push, without storing it.
    func dryRun(_ push: PushRequest, _ configuration: SyncConfiguration) async -> APIAnswer {
        let command = BusSubmission.command(AcceptedPush(push, by: configuration))
        do throws(BusError) {
            let reply = try await ask { $0.dryRun = command }
            guard case .trace(let trace)? = reply.body else { return Self.storeAway }
            if trace.duplicate {
                var answer = APIAnswer.result(.duplicatedBizID, oplogID: OplogID(trace.oplog.id))
                answer.trace = TraceAnswer(isDryRun: true, state: .stored)
                return answer
            }
            guard let traced = TraceAnswer(trace, isDryRun: true, isGlobal: push.scope == .global) else {
                return Self.storeAway
            }
            let validity = StoredValidity(
                asked: push.validUntil, validUntil: WallTime(milliseconds: trace.oplog.validUntilMs),
                storedAt: WallTime(milliseconds: trace.oplog.createdAtMs))
            let isOnline = traced.receivers.contains { $0.state == .onItsWay }
            var answer = APIAnswer.result(
                isOnline || push.scope == .global ? .success : .notOnline,
                detail: [traced.detail, validity.detail].compactMap(\.self).joined(separator: " "))
            answer.trace = traced
            return answer
        } catch {
            return Self.storeAway
        }
    }

    // MARK: Recall

    /// Recalls an oplog. After the response, no device receives it that has not already stored it.
    package func recall(instanceID: String?, body: [UInt8]) async -> APIAnswer {
        guard directory.isLoaded else { return Self.starting }
        let name: Mss_Bus_V1_OplogName
        do throws(PushRefusal) {
            name = try recallName(instanceID: instanceID, body: body)
            let (instanceID, bizType) = (InstanceID(name.instanceID), BizType(name.bizType))
            var controlData = CallControlData(directory, instanceID: instanceID)
            try await controlData.apply { () throws(PushRefusal) in
                try requireInstance(instanceID)
                guard directory.configuration(instanceID, bizType) != nil else {
                    throw PushRefusal(.bizNotOnline, "bizType names no configuration of this instance; check it.")
                }
            }
        } catch {
            return error.answer
        }
        do throws(BusError) {
            let reply = try await ask { $0.recall = name }
            guard case .recall(let recall)? = reply.body, recall.oplogID > 0 else { return Self.noSuchOplog }
            guard !recall.uncertain else { return Self.recallUnknown }
            return .result(
                .success, oplogID: OplogID(recall.oplogID),
                detail: "From now on, no device receives it that has not stored it.")
        } catch {
            return error.code == .unavailable ? Self.storeAway : Self.recallUnknown
        }
    }

    private func recallName(instanceID: String?, body: [UInt8]) throws(PushRefusal) -> Mss_Bus_V1_OplogName {
        let members = try Self.textMembers(of: body)
        return try name(
            instanceID: instanceID, bizType: try members("bizType"), linkToken: try members("linkToken"),
            thirdMessageID: try members("thirdMsgId"), oplogID: nil)
    }

    // MARK: Parts

    func requireInstance(_ id: InstanceID) throws(PushRefusal) {
        guard directory.instance(id) != nil else {
            throw PushRefusal(.bizNotOnline, "This instance does not exist; check instanceId.")
        }
    }

    /// The name of an oplog in a call. Without a linkToken it names a global push. Under a global configuration, a
    /// linkToken is used only when no global push has the name (`TraceStore.Name`).
    private func name(
        instanceID: String?, bizType: String?, linkToken: String?, thirdMessageID: String?, oplogID: String?
    ) throws(PushRefusal) -> Mss_Bus_V1_OplogName {
        let instance = try Self.checked(instanceID, "instanceId")
        let bizType = try Self.checked(bizType, "bizType")
        let target = linkToken.map(\.isEmpty) ?? true ? "" : try Self.checked(linkToken, "linkToken")
        var id: Int64 = 0
        if let oplogID, !oplogID.isEmpty {
            guard let number = Int64(oplogID), number > 0 else {
                throw PushRefusal(.argsIsNull, "oplogId is no number above 0; send the oplogId of an answer.")
            }
            id = number
        } else if thirdMessageID?.isEmpty ?? true {
            throw PushRefusal(.thirdMessageIDIsNull, "thirdMsgId is missing; send the id that the push was made with.")
        }
        if let thirdMessageID, !thirdMessageID.isEmpty {
            guard try Self.checked(thirdMessageID, "thirdMsgId").utf16.count <= Limits.thirdMessageIDUnits else {
                throw PushRefusal(.argsIsNull, "thirdMsgId is longer than any push's; check it.")
            }
        }
        return .with {
            $0.instanceID = instance
            $0.bizType = bizType
            $0.linkToken = target
            $0.thirdMessageID = thirdMessageID ?? ""
            $0.oplogID = id
        }
    }

    /// Reads text members of a body; nil for an absent member.
    static func textMembers(
        of body: [UInt8]
    ) throws(PushRefusal) -> (_ name: String) throws(PushRefusal) -> String? {
        let members: [String: JSONValue]
        do {
            members = try JSONReader.members(of: body)
        } catch {
            throw PushRefusal(.argsIsNull, error.detail)
        }
        return { name throws(PushRefusal) in
            switch members[name] {
            case nil, .null: nil
            case .string(let text): text
            default: throw PushRefusal(.argsIsNull, "\(name) is not a string; send it as a JSON string.")
            }
        }
    }

    static func checked(_ text: String?, _ name: String) throws(PushRefusal) -> String {
        guard let text, !text.isEmpty else {
            throw PushRefusal(.argsIsNull, "\(name) is missing, given twice or not readable; send it once.")
        }
        guard !text.utf8.contains(0) else { throw PushRefusal(.argsIsNull, "\(name) contains NUL; send it without.") }
        return text
    }

    /// The response while the control data is not loaded.
    static var starting: APIAnswer {
        .unavailable("The service is starting and does not know its configurations yet; repeat the call.")
    }
    /// Computed, so that each response has its own random pause.
    static var storeAway: APIAnswer { .unavailable("The store did not answer; repeat the call.") }
    private static let noSuchOplog = APIAnswer.result(
        .argsIsNull, detail: "There is no such oplog; check instanceId, bizType, linkToken and the id.")
    private static let recallUnknown = APIAnswer.result(
        .systemError, detail: "It is not known whether every gateway has applied the recall; repeat the call.")
}
