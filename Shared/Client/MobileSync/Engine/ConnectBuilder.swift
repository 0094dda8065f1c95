import DeviceProtocol
import Foundation
import SwiftProtobuf
import SyncModel

/// Makes the frames that connect the device and bind a user. Not thread-safe.
struct ConnectBuilder {
    /// The largest size of a frame's fixed fields, including a signature.
    private static let frameBytes = 1_024
    private static let libraryVersion = "0.1.0"

    private let configuration: SyncClientConfiguration
    private let store: LocalStore
    private let sharedState: ClientSharedState
    private let parameters: ParameterValues
    private let signer: ConnectSigner?

    init(
        configuration: SyncClientConfiguration, store: LocalStore, sharedState: ClientSharedState,
        parameters: ParameterValues
    ) {
        self.configuration = configuration
        self.store = store
        self.sharedState = sharedState
        self.parameters = parameters
        signer = configuration.appKey.map(ConnectSigner.init)
    }

    /// Returns a new Connect without a bind, and the user's sync points for the bind. Counts the attempt.
    ///
    /// - Parameter user: the user to bind; nil for none.
    func connect(
        binding user: BoundUser?
    ) throws(SyncError) -> (frame: Mss_Device_V1_Connect, points: [Mss_Device_V1_SyncPoint]) {
        let number = try store.device.countConnection()
        let pushToken = try store.device.pushToken()
        let parameters = try parameters.toSend(ofUser: user?.userID)
        var connect = Mss_Device_V1_Connect.with {
            $0.connectionNumber = number
            $0.protocolVersion = DeviceProtocolLimits.version
            $0.instanceID = configuration.instanceID
            $0.deviceID = store.device.identity.deviceID
            $0.deviceSecret = Data(store.device.identity.secret)
            $0.storeID = store.file.storeID
            $0.osName = configuration.operatingSystemName
            $0.osVersion = configuration.operatingSystemVersion
            $0.appVersion = configuration.appVersion
            $0.sdkVersion = Self.libraryVersion
            $0.background = !sharedState.isForeground
            $0.suspended = store.subscriptions.suspended.sorted()
            if let pushToken { $0.pushToken = pushToken }
            $0.parameters = parameters
        }
        // The sync points share the space that the other fields leave in the frame.
        let taken = (try? connect.serializedBytes() as [UInt8])?.count ?? 0
        let maxBytes = max(0, bytesLeft(beside: user) - taken) / 2
        connect.syncPoints = store.channels.syncPoints(ofUser: nil, maxBytes: maxBytes)
        return (connect, points(of: user, maxBytes: maxBytes))
    }

    /// Returns a user's parameters and sync points for a bind on an open connection.
    func bind(
        _ user: BoundUser?
    ) throws(SyncError) -> (parameters: [Mss_Device_V1_Parameter], points: [Mss_Device_V1_SyncPoint]) {
        let parameters = try parameters.toSend(ofUser: user?.userID)
        let taken = parameters.reduce(0) { $0 + $1.value.utf8.count + 80 }
        return (parameters, points(of: user, maxBytes: bytesLeft(beside: user) - taken))
    }

    /// Returns a frame with its signature, if the instance requires one.
    func signed(_ packet: Mss_Device_V1_Packet) -> Mss_Device_V1_Packet {
        signer?.signed(packet, now: store.clock.signingTime) ?? packet
    }

    private func points(of user: BoundUser?, maxBytes: Int) -> [Mss_Device_V1_SyncPoint] {
        user.map { store.channels.syncPoints(ofUser: $0.userID, maxBytes: maxBytes) } ?? []
    }

    /// The bytes of a frame that remain beside the user's ids.
    private func bytesLeft(beside user: BoundUser?) -> Int {
        let ids = (user?.userID.utf8.count ?? 0) + (user?.sessionID.utf8.count ?? 0)
        return DeviceProtocolLimits.toGatewayBytes - Self.frameBytes - ids
    }
}
