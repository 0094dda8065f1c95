import BusMessages
import Crypto
import DeviceProtocol
import SwiftProtobuf
import SyncModel

// The first frame: who the device is, and whether the app that it runs is the instance's (spec H9, reliability SEC9).
extension SessionStateMachine {
    /// Bytes of a device's secret.
    private static let secretBytes = 16...64

    /// The first frame came in: nothing is registered, and nothing is told, before its signature has been checked.
    mutating func received(
        _ connect: Mss_Device_V1_Connect, in world: SessionSurroundings
    ) -> [SessionAction] {
        guard connect.protocolVersion >= 1 else { return close(.protocolViolation, "protocol_version is missing") }
        guard let instance = world.instance(InstanceID(connect.instanceID)), instance.isEnabled else {
            return close(.unknownInstance, "no such instance")
        }
        switch ConnectProof.check(connect, to: instance, in: world) {
        case .notNeeded:
            guard Self.spend(on: connect, in: world) else { return closeForSharedRate() }
            return accept(connect, signedBy: nil, in: world)
        case .signed(let claim):
            // Before the claim, which is a write in the store.
            guard Self.spend(on: connect, in: world) else { return closeForSharedRate() }
            prove(connect)
            return [.claim(claim)]
        case .clockOff:
            return close(.clockOff, "the timestamp is more than 300 s off: go by server_time_ms and sign anew")
        case .refused:
            return closeForSignature()
        case .unavailable:
            return close(.unavailable, "the signature cannot be checked now")
        }
    }

    /// A frame that belongs behind the Connect, whose signature is still being checked.
    mutating func keep(_ packet: Mss_Device_V1_Packet) -> [SessionAction] {
        guard let kept = unproven?.frames.count, kept < UnprovenConnect.framesMax else {
            return close(.protocolViolation, "more than \(UnprovenConnect.framesMax) frames before Connected")
        }
        unproven?.frames.append(packet)
        return []
    }

    /// The nonce of the Connect was claimed, or had been used; nil: nobody could say.
    mutating func claimed(_ isFresh: Bool?, in world: SessionSurroundings) -> [SessionAction] {
        guard phase == .proving, let proven = unproven else { return [] }
        unproven = nil
        guard let isFresh else { return close(.unavailable, "the signature cannot be checked now") }
        guard isFresh else { return close(.signatureRefused, "this Connect has been used: sign a new one") }
        var actions = accept(proven.connect, signedBy: proven.connect.signature.keyID, in: world)
        for frame in proven.frames { actions += received(frame, in: world) }
        return actions
    }

    /// The registration was answered: what ends a session whose Connect may not open it any more; nil: it opens. The
    /// rules that the Connect was taken by may have been replaced while it waited and no lease held.
    mutating func refuseToOpen(in world: SessionSurroundings) -> [SessionAction]? {
        guard let identity, let instance = world.instance(identity.instanceID), instance.requiresSignature else {
            return nil
        }
        let isByLiveKey = instance.keys(for: .device).contains { key in
            identity.signedBy.map { key.id.isSame(as: $0) } ?? false
        }
        return isByLiveKey ? nil : closeForSignature()
    }

    private mutating func closeForSignature() -> [SessionAction] {
        close(.signatureRefused, "this instance takes only connects signed by one of its device keys")
    }

    private mutating func accept(
        _ connect: Mss_Device_V1_Connect, signedBy keyID: String?, in world: SessionSurroundings
    ) -> [SessionAction] {
        guard Self.isIdentifier(connect.deviceID), Self.isIdentifier(connect.storeID) else {
            return close(.protocolViolation, "device_id and store_id take 1 to 100 characters without NUL")
        }
        guard connect.deviceSecret.isEmpty || Self.secretBytes.contains(connect.deviceSecret.count) else {
            return close(.protocolViolation, "device_secret takes 16 to 64 bytes")
        }
        guard let suspended = Self.suspended(connect.suspended) else { return closeForTooManySuspended() }
        guard let parameters = Self.parameters(connect.parameters) else { return closeForParameters() }
        guard !connect.hasBind || connect.bind.bindNumber > 0 else {
            return close(.protocolViolation, "bind_number starts at 1")
        }
        let pushToken = connect.hasPushToken ? PushToken(device: connect.pushToken) : nil
        guard pushToken?.isWellFormed ?? true else {
            return close(.protocolViolation, "push_token is not one that its provider gives, or over 1,024 bytes")
        }
        let identity = SessionIdentity(
            instanceID: InstanceID(connect.instanceID), deviceID: DeviceID(connect.deviceID),
            storeID: StoreID(connect.storeID),
            traits: DeviceTraits(
                operatingSystem: OperatingSystem(name: connect.osName), appVersion: connect.appVersion,
                slot: DeviceSlot(hashing: connect.deviceID)),
            isForeground: !connect.background, isSimple: connect.simple, connectionNumber: connect.connectionNumber,
            suspended: suspended, parameters: parameters,
            secretDigest: connect.deviceSecret.isEmpty ? [] : Array(SHA256.hash(data: connect.deviceSecret)),
            pushToken: pushToken, signedBy: keyID, userID: nil, sessionID: "", bindNumber: 0)
        begin(identity)
        note(connect.syncPoints, needingUser: false)
        if connect.hasBind {
            return take(connect.bind, in: world) ?? refuseBind(connect.bind, in: world)
        }
        return register(in: world)
    }

    /// Notes the positions that the device reports of channels of one sort.
    mutating func note(_ points: [Mss_Device_V1_SyncPoint], needingUser: Bool) {
        for point in points {
            guard let kind = SyncModel.ChannelKind(wire: point.kind), kind.needsUser == needingUser, point.oplogID > 0
            else { continue }
            reportedPoints[ChannelKey(kind: kind, bizType: BizType(point.bizType))] = OplogID(point.oplogID)
        }
    }

    /// Why a registration whose device id belongs to another secret ends the connection.
    mutating func closeForWrongSecret() -> [SessionAction] {
        close(
            .registerAnew,
            "this instance binds device ids to secrets, and this one is another's: take a new device_id and secret")
    }

    /// Whether it can be the id of a device, a store or a user.
    static func isIdentifier(_ text: String) -> Bool {
        !text.isEmpty && text.utf16.count <= Limits.linkTokenUnits && !text.utf8.contains(0)
    }

    /// What the instance allows (spec V1).
    func sessionUnits(in world: SessionSurroundings) -> Int {
        identity.flatMap { world.instance($0.instanceID)?.sessionUnits } ?? Limits.sessionUnits
    }

    mutating func refuseBind(_ bind: Mss_Device_V1_Bind, in world: SessionSurroundings) -> [SessionAction] {
        let reason = """
            user_id takes at most \(Limits.linkTokenUnits) characters without NUL, session_id at most \
            \(sessionUnits(in: world))
            """
        return [.send(.bindResult(bind.bindNumber, refusedBecause: reason))] + close(.protocolViolation, reason)
    }
}

extension PushToken {
    /// Nil for a provider that this build does not know: the device is not woken, and served all the same.
    fileprivate init?(device token: Mss_Device_V1_PushToken) {
        if token.token.isEmpty {
            self.init(provider: .apns, text: "")
        } else if let provider = Provider(rawValue: Int16(truncatingIfNeeded: token.provider.rawValue)) {
            self.init(provider: provider, text: token.token)
        } else {
            return nil
        }
    }
}
