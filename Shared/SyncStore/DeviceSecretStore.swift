import PostgreSQL
package import SyncModel

/// Which device ids belong to which secrets (reliability SEC9); `DeviceSessionStore.register` writes them.
package enum DeviceSecretStore {
    /// Forgets the secret of a device id, so that the next device that connects with the id gets it; nil when none is
    /// on record.
    package static func release(
        _ deviceID: DeviceID, of instanceID: InstanceID, by actor: String
    ) -> ControlStore.Change {
        ControlStore.change(
            "DELETE FROM device_secret WHERE instance_id = $3 AND device_id = $6", "release device", by: actor,
            instanceID, detail: deviceID.text, [.text(deviceID.text)])
    }
}
