import SyncModel
import Synchronization

/// Takes one push from its text to its answer: reading, the rules that need control data, submission.
final class PushIntake: Sendable {
    private let directory: any ConfigurationLookup
    private let submission: any PushSubmitting
    private let inFlightMaximum: Int
    private let inFlight = Atomic<Int>(0)
    private let metrics: IngestMetrics
    private let now: @Sendable () -> WallTime

    /// - Parameters:
    ///   - inFlightMaximum: submissions at one time; more are answered 503 at once.
    ///   - now: the civil time that validity is compared with.
    init(
        directory: any ConfigurationLookup, submission: any PushSubmitting, inFlightMaximum: Int,
        metrics: IngestMetrics, now: @escaping @Sendable () -> WallTime
    ) {
        self.directory = directory
        self.submission = submission
        self.inFlightMaximum = inFlightMaximum
        self.metrics = metrics
        self.now = now
    }

    /// The answer to one push; takes as long as its submission.
    func answer(scope: PushScope, instanceID: String?, body: [UInt8]) async -> APIAnswer {
        do throws(PushRefusal) {
            let push = try PushRequest(scope: scope, instanceID: instanceID, body: body)
            guard directory.isLoaded else {
                return .unavailable(
                    "The service is starting and does not know its configurations yet; repeat the call.")
            }
            let configuration = try acceptingConfiguration(of: push)
            return await submit(push, configuration)
        } catch {
            return .result(error.code, detail: error.detail)
        }
    }

    /// The configuration of the push when it is online and of the call's scope.
    private func acceptingConfiguration(of push: PushRequest) throws(PushRefusal) -> SyncConfiguration {
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
        return configuration
    }

    private static let noConfiguration = PushRefusal(
        .bizNotOnline, "bizType names no online configuration of this instance; create it or put it online.")

    private func submit(_ push: PushRequest, _ configuration: SyncConfiguration) async -> APIAnswer {
        let count = inFlight.add(1, ordering: .relaxed).newValue
        defer { metrics.inFlight(inFlight.subtract(1, ordering: .relaxed).newValue) }
        guard count <= inFlightMaximum else {
            return .unavailable("Too many pushes are in work here; repeat the call after the time in Retry-After.")
        }
        metrics.inFlight(count)
        switch await submission.submit(push, configuration: configuration) {
        case .stored(let id, let online): return stored(push, configuration, id, online: online)
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

    private func stored(
        _ push: PushRequest, _ configuration: SyncConfiguration, _ id: OplogID, online: Bool
    ) -> APIAnswer {
        if push.scope == .global { return .result(.success, oplogID: id) }
        if let validUntil = push.validUntil, validUntil <= now() {
            return .result(
                .notOnline, oplogID: id, detail: "validTimeEnd lies in the past, so no device will receive the push.")
        }
        return .result(online ? .success : .notOnline, oplogID: id)
    }
}
