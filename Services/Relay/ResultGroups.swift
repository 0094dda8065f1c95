import Credentials
import SyncModel
import SyncStore

/// Groups the answered operations whose results one device receives in one oplog; pure.
enum ResultGroups {
    /// A device, compared byte by byte.
    private struct Device: Hashable {
        let instanceID: InstanceID
        let deviceID: DeviceID
    }

    /// Sets the name of its group in each answered operation.
    ///
    /// - Parameters:
    ///   - answered: operations with outcome, message and new state.
    ///   - makeName: makes a new name each time. Names are random, since they must not repeat in a channel.
    static func name(_ answered: inout [DeviceOperationStore.StoredOperation], makeName: () -> String) {
        var places: [Device: [Int]] = [:]
        var order: [Device] = []
        for (index, stored) in answered.enumerated() {
            let device = Device(instanceID: stored.instanceID, deviceID: stored.deviceID)
            if places[device] == nil { order.append(device) }
            places[device, default: []].append(index)
        }
        let texts = answered.map(ResultPayload.fitting)
        for device in order {
            var rest = (places[device] ?? [])[...]
            while !rest.isEmpty {
                let count = ResultPayload.count(fitting: rest.map { texts[$0] })
                let name = makeName()
                for index in rest.prefix(count) { answered[index].resultGroup = name }
                rest = rest.dropFirst(count)
            }
        }
    }

    /// The operations of each group, in the order of their numbers.
    static func groups(
        of all: [DeviceOperationStore.StoredOperation]
    ) -> [[DeviceOperationStore.StoredOperation]] {
        Dictionary(grouping: all, by: \.resultGroup).values.map { $0.sorted { $0.number < $1.number } }
    }
}

/// Random names that are unique among all processes.
enum RandomName {
    /// 32 hex digits.
    static func make() -> String { HexText.of(RandomBytes.make(16)) }
}
