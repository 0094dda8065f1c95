import DeviceProtocol

/// What a frame from a device costs the service.
enum FrameCost: Hashable, CaseIterable {
    /// The gateway alone: acknowledgements are gathered, pings answered.
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
