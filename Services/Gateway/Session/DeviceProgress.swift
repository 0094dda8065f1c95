import SyncModel

/// The progress of a device in one channel, and the part of it that was not reported to the server; pure.
struct DeviceProgress {
    /// The device has stored everything up to here.
    private(set) var stored: OplogID
    /// The part of `stored` that the device itself acknowledged or reported. `stored` also counts skipped and discarded
    /// oplogs.
    private(set) var acknowledged: OplogID
    /// The sync point that was sent to the server.
    private var recorded: OplogID
    /// Oplogs that a simple device has acknowledged and that were not reported yet.
    private var confirmed: [OplogID] = []

    init(stored: OplogID, acknowledged: OplogID, recorded: OplogID) {
        self.stored = stored
        self.acknowledged = acknowledged
        self.recorded = recorded
    }

    /// Raises `stored`; a lower value has no effect.
    mutating func raiseStored(to id: OplogID) { stored = max(stored, id) }

    /// Records the device's acknowledgement.
    mutating func acknowledge(upto: OplogID) {
        acknowledged = max(acknowledged, upto)
        raiseStored(to: upto)
    }

    /// Records the oplogs that a simple device has acknowledged.
    mutating func confirm(_ ids: [OplogID]) { confirmed += ids }

    /// Whether there is a stored position or an acknowledgement of a simple device to report.
    var owesReport: Bool { stored > recorded || !confirmed.isEmpty }

    /// Returns the unreported part and marks it as reported: the sync point to record, nil if it did not rise, and the
    /// oplogs that a simple device has acknowledged.
    mutating func dequeueReport() -> (upto: OplogID?, confirmed: [OplogID]) {
        defer { (recorded, confirmed) = (max(recorded, stored), []) }
        return (stored > recorded ? stored : nil, confirmed)
    }

    /// Takes over the unreported acknowledgements of a simple device from the former cursor, and the acknowledged
    /// position.
    ///
    /// - Parameter onRecord: the acknowledged position of the store, from the server.
    mutating func inherit(from former: DeviceProgress, acknowledged onRecord: OplogID) {
        confirmed = former.confirmed
        acknowledged = max(onRecord, former.acknowledged)
    }
}
