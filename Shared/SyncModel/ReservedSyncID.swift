/// Sync IDs that the service itself pushes under.
package enum ReservedSyncID {
    /// What became of a device's operations: a configuration for devices that comes with the instance's relay URL.
    package static let results = BizType("MSS_RESULTS")
    /// Commands that ask devices for their logs, and the component of the operations by which logs come up: a
    /// configuration for devices that comes with the first command.
    package static let diagnosis = BizType("MSS_DIAGNOSIS")
}
