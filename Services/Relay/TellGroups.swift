import SyncModel
import SyncStore

/// Puts answers together that one device is told in one oplog; pure.
enum TellGroups {
    /// A device, byte by byte.
    private struct Device: Hashable {
        let instanceID: InstanceID
        let deviceID: DeviceID
    }

    /// Gives each answered operation the name of its group.
    ///
    /// - Parameters:
    ///   - answered: with outcome, message and import.
    ///   - makeName: a new name each time; random, since names must not repeat in a channel.
    static func name(_ answered: inout [DeviceOperationStore.Held], makeName: () -> String) {
        var places: [Device: [Int]] = [:]
        var order: [Device] = []
        for (index, held) in answered.enumerated() {
            let device = Device(instanceID: held.instanceID, deviceID: held.deviceID)
            if places[device] == nil { order.append(device) }
            places[device, default: []].append(index)
        }
        let texts = answered.map(ResultPayload.fitting)
        for device in order {
            var rest = (places[device] ?? [])[...]
            while !rest.isEmpty {
                let count = ResultPayload.count(fitting: rest.map { texts[$0] })
                let name = makeName()
                for index in rest.prefix(count) { answered[index].tellGroup = name }
                rest = rest.dropFirst(count)
            }
        }
    }
}
