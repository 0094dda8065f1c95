/// The pushes that the app of each device must still receive.
struct OwedHandOuts: Sendable {
    private var pushesByDevice: [String: Set<String>] = [:]
    /// Number of pairs of a push and a device.
    private(set) var count = 0

    /// Names of the pushes that a device's app must still receive.
    func pushes(of device: String) -> Set<String> { pushesByDevice[device] ?? [] }

    mutating func add(_ push: String, to device: String) {
        if pushesByDevice[device, default: []].insert(push).inserted { count += 1 }
    }

    mutating func remove(_ push: String, from device: String) {
        if pushesByDevice[device]?.remove(push) != nil { count -= 1 }
    }

    mutating func remove(_ push: String, from devices: Set<String>) {
        for device in devices { remove(push, from: device) }
    }

    /// Replaces the pushes of a device.
    mutating func set(_ pushes: Set<String>, of device: String) {
        count += pushes.count - (pushesByDevice.updateValue(pushes, forKey: device)?.count ?? 0)
    }
}
