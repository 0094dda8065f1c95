import BackendCalls
import Foundation
import Logging
import Metrics
import SyncModel
import SyncStore

/// Sends the outcomes of operations as ordinary pushes: each result to the device that sent the operation, and the new
/// state of the entity to all devices of the user. Their `thirdMsgId`s make repeats harmless.
struct ResultPusher: Sendable {
    let pushes: any PushSubmitting
    /// Finds a configuration, online or not.
    let configuration: @Sendable (InstanceID, BizType) -> SyncConfiguration?
    let logger: Logger
    private let resultCount = Counter(label: "mss_relay_results_told")
    private let importCount = Counter(label: "mss_relay_imports_told")
    private let droppedCount = Counter(label: "mss_relay_imports_dropped")

    init(
        pushes: any PushSubmitting, configuration: @escaping @Sendable (InstanceID, BizType) -> SyncConfiguration?,
        logger: Logger
    ) {
        self.pushes = pushes
        self.configuration = configuration
        self.logger = logger
    }

    /// Pushes the results of one group, which belongs to one device.
    ///
    /// - Parameter group: not empty, in the order of the numbers.
    /// - Returns: whether everything is pushed; false: push the group again.
    func push(_ group: [DeviceOperationStore.StoredOperation]) async -> Bool {
        for stored in group {
            guard await pushImport(of: stored) else { return false }
        }
        guard let first = group.first else { return true }
        let payload = ResultPayload.payload(group.map(ResultPayload.fitting))
        let push = PushRequest(
            scope: .single, instanceID: first.instanceID, bizType: ReservedSyncID.results,
            linkToken: first.deviceID.text, thirdMessageID: ThirdMessageID("r-\(first.resultGroup)"),
            payload: Array(payload.utf8), isBinary: false, targeting: Targeting(), validUntil: nil)
        switch await submit(push) {
        case .stored, .duplicate:
            resultCount.increment(by: group.count)
            return true
        case .refused(let detail):
            // A repeat would be refused again.
            logger.error(
                "the oplog writer refused a result push",
                metadata: ["instanceId": "\(first.instanceID)", "reason": "\(detail)"])
            return true
        case .noConfiguration, .notAttempted, .unknown, nil: return false
        }
    }

    /// Pushes the new state of the entity, if the component has a configuration; otherwise the state is only for the
    /// device with the result. A state that can never be pushed is dropped.
    private func pushImport(of stored: DeviceOperationStore.StoredOperation) async -> Bool {
        guard let imported = stored.imported else { return true }
        let text = String(decoding: imported, as: UTF8.self)
        let component = BizType(stored.operation.component)
        guard let configuration = configuration(stored.instanceID, component) else {
            if !ResultPayload.fitsWithImport(stored) {
                drop(stored, "it is too long for the result, and the component has no configuration")
            }
            return true
        }
        guard text.utf16.count <= Limits.payloadUnits, configuration.kind == .user else {
            drop(stored, "the state is too long, or the component's configuration is not for users")
            return true
        }
        let push = PushRequest(
            scope: .single, instanceID: stored.instanceID, bizType: component, linkToken: stored.userID.text,
            thirdMessageID: ThirdMessageID("i-\(stored.resultGroup)-\(stored.number)"), payload: imported,
            isBinary: false, targeting: Targeting(), validUntil: nil)
        switch await submit(push) {
        case .stored, .duplicate:
            importCount.increment()
            return true
        case .refused(let detail): drop(stored, detail)
        case .noConfiguration, nil: drop(stored, "the configuration of the component is not online")
        case .notAttempted, .unknown: return false
        }
        return true
    }

    /// The outcome of the push; nil if there is no such configuration.
    private func submit(_ push: PushRequest) async -> PushOutcome? {
        guard let configuration = configuration(push.instanceID, push.bizType) else { return nil }
        return await pushes.submit([AcceptedPush(push, by: configuration)]).first
    }

    private func drop(_ stored: DeviceOperationStore.StoredOperation, _ reason: String) {
        droppedCount.increment()
        logger.warning(
            "dropped the new state of an entity that a tenant returned",
            metadata: [
                "instanceId": "\(stored.instanceID)", "component": "\(stored.operation.component)",
                "reason": "\(reason)",
            ])
    }
}
