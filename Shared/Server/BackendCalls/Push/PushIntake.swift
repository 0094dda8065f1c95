package import ServiceKit
package import SyncModel
import Synchronization

/// Processes push calls: reads them, applies the rules that need control data, and submits them.
package final class PushIntake: Sendable {
    /// Charges `count` pushes to the caller's quota and makes them, or responds with a refusal.
    package typealias Paying = (_ count: Int, _ make: () async -> APIAnswer) async -> APIAnswer

    private let directory: any ConfigurationLookup
    private let submission: any PushSubmitting
    private let operations: OperationIntake
    private let inFlightMaximum: Int
    private let inFlight = Atomic<Int>(0)
    private let whenInFlight: @Sendable (Int) -> Void

    /// - Parameters:
    ///   - inFlightMaximum: concurrent submissions; further pushes are refused at once.
    ///   - whenInFlight: receives the number of submissions after each change.
    package init(
        directory: any ConfigurationLookup, submission: any PushSubmitting, operations: OperationIntake,
        inFlightMaximum: Int, whenInFlight: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        self.directory = directory
        self.submission = submission
        self.operations = operations
        self.inFlightMaximum = inFlightMaximum
        self.whenInFlight = whenInFlight
    }

    /// Maximum number of items in a batch (H6).
    package static let batchItems = 500

    /// The response to one push, after its submission.
    ///
    /// - Parameters:
    ///   - isDryRun: only report the expected result (H7).
    ///   - paying: charges the push; a dry run is free.
    package func answer(
        scope: PushScope, instanceID: String?, body: [UInt8], isDryRun: Bool = false,
        paying: Paying = { _, make in await make() }
    ) async -> APIAnswer {
        guard directory.isLoaded else { return OperationIntake.starting }
        do throws(PushRefusal) {
            let push = try PushRequest(scope: scope, instanceID: instanceID, body: body)
            var controlData = CallControlData(directory, instanceID: push.instanceID)
            let configuration = try await acceptingConfiguration(of: push, &controlData)
            if isDryRun { return await operations.dryRun(push, configuration) }
            return await paying(1) { await submit([AcceptedPush(push, by: configuration)])[0] }
        } catch {
            return error.answer
        }
    }

    /// The response to a batch of single pushes, with one result for each item, in order. Items for one target are
    /// stored in their order. A refused item does not stop the others (H6).
    package func answerBatch(
        instanceID: String?, body: [UInt8], isDryRun: Bool = false, paying: Paying = { _, make in await make() }
    ) async -> APIAnswer {
        guard directory.isLoaded else { return OperationIntake.starting }
        let items: [JSONValue]
        let controlData: CallControlData
        do throws(PushRefusal) {
            guard let instanceID, !instanceID.isEmpty else { throw PushRequest.noInstance }
            items = try Self.items(of: body)
            controlData = CallControlData(directory, instanceID: InstanceID(instanceID))
        } catch {
            return error.answer
        }
        if isDryRun { return await answerItems(items, instanceID, controlData, isDryRun: true) }
        return await paying(items.count) { await answerItems(items, instanceID, controlData, isDryRun: false) }
    }

    private func answerItems(
        _ items: [JSONValue], _ instanceID: String?, _ controlData: CallControlData, isDryRun: Bool
    ) async -> APIAnswer {
        var results = [APIAnswer](repeating: .result(.argsIsNull), count: items.count)
        var accepted: [(index: Int, push: PushRequest, configuration: SyncConfiguration)] = []
        var controlData = controlData
        for (index, item) in items.enumerated() {
            do throws(PushRefusal) {
                guard case .structure(let text) = item else {
                    throw PushRefusal(.argsIsNull, "This item is not a JSON object; send the members of /single.")
                }
                let push = try PushRequest(scope: .single, instanceID: instanceID, body: text)
                accepted.append((index, push, try await acceptingConfiguration(of: push, &controlData)))
            } catch {
                results[index] = error.answer
            }
        }
        if isDryRun {
            await withTaskGroup(of: (Int, APIAnswer).self) { tasks in
                for item in accepted {
                    tasks.addTask { (item.index, await self.operations.dryRun(item.push, item.configuration)) }
                }
                for await (index, answer) in tasks { results[index] = answer }
            }
        } else {
            let answers = await submit(accepted.map { AcceptedPush($0.push, by: $0.configuration) })
            for (item, answer) in zip(accepted, answers) { results[item.index] = answer }
        }
        var answer = APIAnswer.result(.success)
        answer.results = results
        return answer
    }

    private static func items(of body: [UInt8]) throws(PushRefusal) -> [JSONValue] {
        do throws(JSONFault) {
            // Items are two levels deeper than the body of a single push.
            let levels = JSONReader.maximumDepth + 2
            guard case .structure(let text)? = try JSONReader.members(of: body, levels: levels)["items"] else {
                throw .notAnObject
            }
            let items = try JSONReader.elements(of: text, levels: levels)
            guard (1...batchItems).contains(items.count) else { throw .notAnObject }
            return items
        } catch .notAnObject {
            throw PushRefusal(
                .argsIsNull, "items is missing or does not hold 1 to \(batchItems) items; send {\"items\":[{…}]}.")
        } catch {
            throw PushRefusal(.argsIsNull, error.detail)
        }
    }

    /// The configuration of the push. It must be online and of the call's scope.
    private func acceptingConfiguration(
        of push: PushRequest, _ controlData: inout CallControlData
    ) async throws(PushRefusal) -> SyncConfiguration {
        try await controlData.apply { () throws(PushRefusal) in try configuration(for: push) }
    }

    private func configuration(for push: PushRequest) throws(PushRefusal) -> SyncConfiguration {
        guard let instance = directory.instance(push.instanceID), instance.isEnabled else {
            throw PushRefusal(.bizNotOnline, "This instance does not exist or is disabled; check instanceId.")
        }
        guard let configuration = directory.configuration(instance.id, push.bizType), configuration.isOnline else {
            throw Self.noConfiguration
        }
        guard configuration.kind.isGlobal == (push.scope == .global) else {
            let call = configuration.kind.isGlobal ? "global" : "single"
            throw PushRefusal(
                .notSupportGlobal, "This configuration is for \(call) push; call /webapi/sync/\(call).")
        }
        if !push.attributes.isEmpty {
            // A configuration with unreadable rules was refused when it was saved.
            let rules = try? SubscriptionRules(configuration.subscription)
            if let fault = rules?.fault(in: push.attributes) { throw PushRefusal(.argsIsNull, fault) }
        }
        return configuration
    }

    private static let noConfiguration = PushRefusal(
        .bizNotOnline, "bizType names no online configuration of this instance; create it or put it online.")

    private func submit(_ pushes: [AcceptedPush]) async -> [APIAnswer] {
        guard !pushes.isEmpty else { return [] }
        let count = inFlight.add(pushes.count, ordering: .relaxed).newValue
        defer { whenInFlight(inFlight.subtract(pushes.count, ordering: .relaxed).newValue) }
        guard count <= inFlightMaximum else {
            let answer = APIAnswer.unavailable(
                "Too many pushes are in progress here; repeat the call after the time in Retry-After.")
            return Array(repeating: answer, count: pushes.count)
        }
        whenInFlight(count)
        let outcomes = await submission.submit(pushes)
        return zip(pushes, outcomes).map { answer(to: $0.request, $1) }
    }

    private func answer(to push: PushRequest, _ outcome: PushOutcome) -> APIAnswer {
        switch outcome {
        case .stored(let id, let online, let validity):
            let isTaken = push.scope == .global || (online && validity != .over)
            return .result(isTaken ? .success : .notOnline, oplogID: id, detail: validity.detail)
        case .duplicate(let id):
            return .result(
                .duplicatedBizID, oplogID: id,
                detail: "This thirdMsgId was accepted before; oplogId is of that first call.")
        case .refused(let detail): return .result(.argsIsNull, detail: detail)
        case .noConfiguration: return .result(Self.noConfiguration.code, detail: Self.noConfiguration.detail)
        case .notAttempted:
            return .unavailable("The store cannot be reached; nothing was stored. Repeat the call.")
        case .unknown:
            return .result(
                .systemError,
                detail: "It is not known whether the push was stored; repeat the call with the same thirdMsgId.")
        }
    }
}

/// The control data that API calls read.
package protocol ConfigurationLookup: Sendable {
    /// False before the first snapshot; the other members are not usable then.
    var isLoaded: Bool { get }
    /// An instance, enabled or not.
    func instance(_ id: InstanceID) -> Instance?
    /// A configuration, online or not.
    func configuration(_ instanceID: InstanceID, _ bizType: BizType) -> SyncConfiguration?
    /// Requests the control data after this call. Returns after the reply is applied; false if there was none.
    func refreshed() async -> Bool
}

extension ControlDirectory: ConfigurationLookup {}
