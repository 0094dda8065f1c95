import PostgreSQL
package import SyncModel

/// The secrets of device ids (SEC9); `DeviceSessionStore.register` writes them.
package enum DeviceSecretStore {
    /// Forgets the secret of a device id, so that the next device that connects with the id registers its own; refused
    /// when no secret is on record.
    package static func release(
        _ deviceID: DeviceID, of instanceID: InstanceID, by actor: OperationActor
    ) -> ControlStore.Change {
        ControlStore.change(
            "SELECT version, is_changed, is_stale FROM release_device($1, $2, $3)",
            [actor.value, .text(instanceID.text), .text(deviceID.text)])
    }
}
