/// The recorded data of one oplog and one device, and the rule that derives the delivery state; pure (H7).
package struct DeliveryTrace: Hashable, Sendable {
    /// Recorded events of the oplog at this device; nil: it has not happened.
    package struct Record: Hashable, Sendable {
        package var handedOutAt: WallTime?
        /// The number of hand-outs to the app that the device reported; 0: none reported.
        package var attempts = 0
        /// The oplog was skipped for this reason.
        package var skipReason: SkipReason?
        package var skippedAt: WallTime?
        /// The oplog was discarded by a threshold.
        package var discardedAt: WallTime?
        package var confirmedAt: WallTime?
        package var deadAt: WallTime?

        package init() {}
    }

    /// The connected device.
    package struct Presence: Hashable, Sendable {
        package var traits: DeviceTraits
        package var hasValidVerdict: Bool
        package var isOwner: Bool
        /// Whether the oplog's Sync ID is suspended.
        package var isSuspended: Bool

        package init(traits: DeviceTraits, hasValidVerdict: Bool, isOwner: Bool, isSuspended: Bool) {
            self.traits = traits
            self.hasValidVerdict = hasValidVerdict
            self.isOwner = isOwner
            self.isSuspended = isSuspended
        }
    }

    /// The oplog; its payload is not used.
    package var oplog: Oplog
    package var recalledAt: WallTime?
    /// A nil value means: it does not exist or is deleted.
    package var instance: Instance?
    package var configuration: SyncConfiguration?
    package var record = Record()
    /// The receiver's sync point.
    package var syncPoint = OplogID.zero
    /// A nil value means: not connected.
    package var presence: Presence?
    /// A nil value means: no known device.
    package var slot: DeviceSlot?

    package init(oplog: Oplog) { self.oplog = oplog }

    /// The state of the oplog at this device, and its begin. The first matching rule decides.
    package func state(now: WallTime) -> (state: DeliveryState, at: WallTime?) {
        if let at = record.confirmedAt { return (.delivered, at) }
        if let at = record.deadAt { return (.dead, at) }
        if let at = record.handedOutAt {
            if oplog.id <= syncPoint { return (.stored, at) }
            return recalledAt.map { (.recalled, $0) } ?? (.handedOut, at)
        }
        if let slot, !oplog.targeting.share.contains(slot) { return (.outsideStage, nil) }
        if let reason = record.skipReason { return (DeliveryState(reason), record.skippedAt) }
        // The discarded range also contains earlier oplogs that were recalled or expired before.
        if let at = record.discardedAt, at < oplog.validUntil, recalledAt.map({ at < $0 }) ?? true {
            return (.overThreshold, at)
        }
        if let recalledAt { return (.recalled, recalledAt) }
        if oplog.validUntil <= now { return (.expired, oplog.validUntil) }
        if !oplog.isPersistent { return (.notPersisted, oplog.createdAt) }
        // The sync point is past the oplog, but facts are a few seconds late.
        if oplog.id <= syncPoint { return (.stored, nil) }
        return waiting
    }

    /// The state of an oplog that can still be sent: the first obstacle.
    private var waiting: (DeliveryState, WallTime?) {
        if let obstacle = IneligibilityReason(instance: instance, configuration: configuration) {
            return (DeliveryState(obstacle), nil)
        }
        guard let presence, let configuration else { return (.notConnected, nil) }
        if let reason = oplog.targeting.exclusion(of: presence.traits) { return (DeliveryState(reason), nil) }
        if let obstacle = configuration.rules.obstacle(
            isSuspended: presence.isSuspended, isOwner: presence.isOwner, hasValidVerdict: presence.hasValidVerdict)
        {
            return (DeliveryState(obstacle), nil)
        }
        return (configuration.kind.isGlobal && !configuration.isImmediate ? .waitsForForeground : .onItsWay, nil)
    }
}
