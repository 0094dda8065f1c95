extension Mss_Device_V1_Connect {
    /// The signed fields: all except the signature's `mac`, in this order (DeviceProtocol.md, Signed connects).
    package var signedParts: [[UInt8]] {
        var parts = SignedParts()
        parts.add(signature.keyID)
        parts.add(signature.timestampMs)
        parts.add([UInt8](signature.nonce))
        parts.add(protocolVersion)
        for text in [instanceID, deviceID, storeID, osName, osVersion, appVersion, sdkVersion] { parts.add(text) }
        parts.add(background)
        parts.add(syncPoints)
        parts.add(hasBind)
        if hasBind {
            parts.add(bind.bindNumber)
            parts.add(bind.userID)
            parts.add(bind.sessionID)
            parts.add(bind.syncPoints)
        }
        parts.add(simple)
        parts.add(suspended.count)
        for bizType in suspended { parts.add(bizType) }
        parts.add([UInt8](deviceSecret))
        parts.add(connectionNumber)
        if hasPushToken {
            parts.add(pushToken.provider.rawValue)
            parts.add(pushToken.token)
        }
        if !parameters.isEmpty {
            parts.add(parameters.count)
            for parameter in parameters {
                parts.add(parameter.bizType)
                parts.add(parameter.name)
                parts.add(parameter.value)
            }
        }
        if bind.requestedByApp || bind.ownershipEpoch != 0 {
            parts.add(bind.requestedByApp)
            parts.add(bind.ownershipEpoch)
        }
        return parts.list
    }
}

/// Fields as bytes: texts in UTF-8, numbers as decimal digits, booleans as 1 and 0, lists after their count.
private struct SignedParts {
    private(set) var list: [[UInt8]] = []

    mutating func add(_ bytes: [UInt8]) { list.append(bytes) }
    mutating func add(_ text: String) { add(Array(text.utf8)) }
    mutating func add(_ number: some BinaryInteger) { add("\(number)") }
    mutating func add(_ flag: Bool) { add(flag ? 1 : 0) }

    mutating func add(_ points: [Mss_Device_V1_SyncPoint]) {
        add(points.count)
        for point in points {
            add(point.kind.rawValue)
            add(point.bizType)
            add(point.oplogID)
        }
    }
}
