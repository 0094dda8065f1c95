import DeliveryHistory
import SyncModel

@testable import BackendCalls

/// A push that its backend repeats until it knows the outcome.
struct SimulatedPush {
    let name: String
    let address: ChannelAddress
    let configuration: SyncConfiguration
    var targeting = Targeting()
    var validUntil: WallTime?

    /// The push as the ingest receives it.
    var request: PushRequest {
        PushRequest(
            scope: configuration.kind.isGlobal ? .global : .single, instanceID: address.target.instanceID,
            bizType: address.bizType, linkToken: address.target.target, thirdMessageID: ThirdMessageID(name),
            payload: Array(HistoryTarget(address).payload(of: name).utf8), isBinary: false, targeting: targeting,
            validUntil: validUntil)
    }
}
