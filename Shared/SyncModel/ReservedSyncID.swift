/// Sync IDs that the service itself pushes under.
package enum ReservedSyncID {
    /// What became of a device's operations: a configuration for devices that comes with the instance's relay URL.
    package static let results = BizType("MSS_RESULTS")
}
