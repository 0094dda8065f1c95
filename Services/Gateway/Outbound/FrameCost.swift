import DeviceProtocol

/// The cost of a device's frame for the service.
enum FrameCost: Hashable, CaseIterable {
    /// Only work of the gateway: acknowledgements are merged, pings are answered.
    case plain
    /// A read in the store.
    case request
    /// A write in the store.
    case change

    init(of packet: Mss_Device_V1_Packet) {
        switch packet.body {
        case .historyRequest, .summaryRequest: self = .request
        case .bind, .foreground, .subscriptions, .submitOperations, .keepParameters: self = .change
        default: self = .plain
        }
    }
}
