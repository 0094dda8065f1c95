import BackendCalls
import Foundation
import Logging
import Metrics
import SyncModel
import SyncStore

/// Tells devices what became of operations, by ordinary pushes whose keys make repeats harmless: results to the device
/// that sent them, and the tenant's new state to all devices of its user.
struct Teller: Sendable {
    let pushes: any PushSubmitting
    /// A configuration, online or not.
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

    /// Tells one group, of one device.
    ///
    /// - Parameter group: not empty, in the order of their numbers.
    /// - Returns: whether all of it is told; otherwise it is to be told again.
    func tell(_ group: [DeviceOperationStore.Held]) async -> Bool {
        for held in group {
            guard await tellImport(of: held) else { return false }
        }
        guard let first = group.first else { return true }
        let payload = ResultPayload.payload(group.map(ResultPayload.fitting))
        let push = PushRequest(
            scope: .single, instanceID: first.instanceID, bizType: ReservedSyncID.results,
            linkToken: first.deviceID.text, thirdMessageID: ThirdMessageID("r-\(first.tellGroup)"),
            payload: Array(payload.utf8), isBinary: false, targeting: Targeting(), validUntil: nil)
        switch await submit(push) {
        case .stored, .duplicate:
            resultCount.increment(by: group.count)
            return true
        case .refused(let detail):
            // No repeat would change that.
            logger.error(
                "a result was refused by the store",
                metadata: ["instanceId": "\(first.instanceID)", "reason": "\(detail)"])
            return true
        case .noConfiguration, .notAttempted, .unknown, nil: return false
        }
    }

    /// What cannot be pushed for good is left out: the device has its result all the same.
    private func tellImport(of held: DeviceOperationStore.Held) async -> Bool {
        guard let imported = held.imported else { return true }
        let text = String(decoding: imported, as: UTF8.self)
        let component = BizType(held.operation.component)
        guard text.utf16.count <= Limits.payloadUnits, configuration(held.instanceID, component)?.kind == .user else {
            drop(held, "it is too long, or its component has no configuration for users")
            return true
        }
        let push = PushRequest(
            scope: .single, instanceID: held.instanceID, bizType: component, linkToken: held.userID.text,
            thirdMessageID: ThirdMessageID("i-\(held.tellGroup)-\(held.number)"), payload: imported,
            isBinary: false, targeting: Targeting(), validUntil: nil)
        switch await submit(push) {
        case .stored, .duplicate:
            importCount.increment()
            return true
        case .refused(let detail): drop(held, detail)
        case .noConfiguration, nil: drop(held, "the configuration of its component is not online")
        case .notAttempted, .unknown: return false
        }
        return true
    }

    /// Nil: there is no such configuration.
    private func submit(_ push: PushRequest) async -> PushOutcome? {
        guard let configuration = configuration(push.instanceID, push.bizType) else { return nil }
        return await pushes.submit([push], configuration: configuration).first
    }

    private func drop(_ held: DeviceOperationStore.Held, _ reason: String) {
        droppedCount.increment()
        logger.warning(
            "a tenant's new state was not pushed",
            metadata: [
                "instanceId": "\(held.instanceID)", "component": "\(held.operation.component)", "reason": "\(reason)",
            ])
    }
}
