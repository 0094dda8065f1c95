/// The instances and configurations of one control version. It never changes, so many sessions can share it.
package final class ControlSnapshot: Sendable {
    /// The control version; 0: no control data was loaded.
    package let version: Int64
    private let instancesByID: [InstanceID: Instance]
    private let configurationsByInstance: [InstanceID: [BizType: SyncConfiguration]]
    private let filteredByInstance: [InstanceID: FilteredTypes]
    private let checksByInstance: [InstanceID: InstanceChecks]

    package init(version: Int64 = 0, instances: [Instance] = [], configurations: [SyncConfiguration] = []) {
        self.version = version
        instancesByID = Dictionary(instances.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
        configurationsByInstance = Dictionary(grouping: configurations, by: \.instanceID).mapValues { configurations in
            Dictionary(configurations.map { ($0.bizType, $0) }, uniquingKeysWith: { $1 })
        }
        filteredByInstance = configurationsByInstance.mapValues { FilteredTypes(Array($0.values)) }
        checksByInstance = instancesByID.mapValues { [configurationsByInstance] instance in
            InstanceChecks(instance, configurationsByInstance[instance.id, default: [:]].values)
        }
    }

    /// An instance, enabled or not.
    package func instance(_ id: InstanceID) -> Instance? { instancesByID[id] }

    /// The ids of every instance, in no order.
    package var instanceIDs: [InstanceID] { Array(instancesByID.keys) }

    /// Every instance, in the order of their ids.
    package var instances: [Instance] { instancesByID.values.sorted { $0.id.text < $1.id.text } }

    /// A configuration, online or not.
    package func configuration(_ instanceID: InstanceID, _ bizType: BizType) -> SyncConfiguration? {
        configurationsByInstance[instanceID]?[bizType]
    }

    /// Every configuration of an instance, in the order of their Sync IDs.
    package func configurations(of instanceID: InstanceID) -> [SyncConfiguration] {
        configurationsByInstance[instanceID, default: [:]].values.sorted { $0.bizType.text < $1.bizType.text }
    }

    /// The configurations of an instance that have filters.
    package func filtered(_ id: InstanceID) -> FilteredTypes { filteredByInstance[id] ?? FilteredTypes() }

    /// The writes of an instance's devices that need a valid verdict.
    package func checks(_ id: InstanceID) -> InstanceChecks { checksByInstance[id] ?? InstanceChecks() }
}
